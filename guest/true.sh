#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Does nothing, successfully: the script of the trial boot under KVM.
exit 0
