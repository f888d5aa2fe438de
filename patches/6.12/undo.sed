# scripts/series: how this version's files differ from what the patches in series/undo/ say.
s/if \(!(map|rec) \|\| !\(iter->tr->trace_flags & TRACE_ITER\(STACKMAP_FRAMES\)\)\)/if (!\1)/
s/if \(nr > 0 && \(iter->tr->trace_flags & TRACE_ITER\(STACKMAP_FRAMES\)\)\)/if (nr > 0)/
