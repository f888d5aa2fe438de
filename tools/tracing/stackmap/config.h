/* SPDX-License-Identifier: GPL-2.0 */
/* The options of the commands that read. */
#ifndef STACKMAP_CONFIG_H
#define STACKMAP_CONFIG_H

#include "options.h"
#include "stackmap.h"

extern struct config cfg;
extern struct choice instance_choices[];
extern struct choice map_choices[];
extern struct choice symbol_choices[];
extern struct choice line_choices[];
extern struct choice weight_choices[];
extern struct choice sample_choices[];
extern struct choice top_choices[];
extern struct choice min_choices[];
extern struct choice grep_choices[];
extern struct choice function_choices[];
extern struct choice output_choices[];
extern struct choice json_choices[];
extern struct choice by_choices[];
extern struct choice format_choices[];
extern struct choice diff_format_choices[];
extern struct choice old_choices[];

void check_config(const struct command *cmd, enum form form);
/* read.c */
extern const struct command map_command, stacks_command, report_command, export_command,
			    diff_command, annotate_command;
bool is_recording(const char *path);

#endif
