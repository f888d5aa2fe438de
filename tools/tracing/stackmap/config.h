/* SPDX-License-Identifier: GPL-2.0 */
/* The options of the commands that read. */
#ifndef STACKMAP_CONFIG_H
#define STACKMAP_CONFIG_H

#include "options.h"
#include "stackmap.h"

extern struct config cfg;
extern struct choice instance_choices[], map_choices[], symbol_choices[], line_choices[],
		     weight_choices[], sample_choices[], top_choices[], min_choices[],
		     grep_choices[], function_choices[], output_choices[], json_choices[],
		     by_choices[], format_choices[], diff_format_choices[], old_choices[];

void check_config(const struct command *cmd, enum form form);
/* read.c */
extern const struct command map_command, stacks_command, report_command, export_command,
			    diff_command, annotate_command;
bool is_recording(const char *path);

#endif
