package main

// remarks is the text of the report that explains what the numbers of a run do not show. Its figures were measured
// separately, with perf, on the machine of the results, which has 2 cores.
const remarks = `
## What a burst of today ends in

Varve makes a file for each memory, and an index of words, which no peer here has. Its writers run at most 96 MiB of log ahead of that, 77,000 of these
documents, and are slowed from half of it on: puts by 64 goroutines, batches, and puts from four processes reach it within these bursts. On 2026-11-20, when there was
no index of words and writers ran 1 GiB ahead, the same bursts took in 87,000, 140,000 and 53,000 documents a second, and settled 27,000 files a second; a store that
grew for minutes had its writers wait for two minutes at once then. Loads of minutes are in [steady](steady/STEADY.md).

The documents of bursts are random letters: of some 170 words in each nearly all are new ones, the worst that an index of words can be given, and most of what settling
costs. With documents of words (` + "`-prose`" + `) Varve settles 13,293 (12,406–14,519) new files a second and 12,142 (11,123–13,297) replaced ones, twice as many
(3 rounds, the disk's limit 39,974 and 63,137); the bursts above are the same with either, since they end in the 96 MiB.

## 4 processes on two cores, before

Of 2026-11-20, before there were an index of words and delays for writers. SQLite puts 7,800–8,000/s here with 4 processes (the design's figure, 5,300–6,500, is of an older run), so ten times that is 79,000/s: 25 µs of the two
cores for each put, the load generator and all four processes included. Where they go in a burst of Varve at 66,000/s (perf record -a, 2026-11-20; µs of the
two cores for each put, 30 in all):

| | µs |
|---|---:|
| reading, checking and applying what was written, by each of the four processes: three quarters of it is others' | 4.0 |
| looking the id up in overlay and index, preconditions, copies for the caller | 4.1 |
| handing append.lock and sync.lock from process to process | 3.3 |
| making the document: JSON, sha256, index line | 2.9 |
| fdatasync and the block device, with the kernel's threads | 2.9 |
| judging, frames, checksums, one write for each group | 2.3 |
| Go's scheduler and garbage collector | 1.8 |
| writing out space ahead of the tail | 1.3 |
| files and index in the background | 0.9 |
| the load generator | 0.9 |
| perf itself, and a search that was made cheaper since | 2.3 |
| idle: all 64 wait for a sync, or for the one who has a lock | 3.5 |

The sum without idle, perf and that search is 24 µs: 82,000/s with both cores busy all the time is the ceiling of this engine as it is. The log alone (package
wal; nothing is made, looked up or put into files) does 103,000–125,000/s with the same 4 × 16, where the design's trial had 112,000. In bursts of 2 and 3 s the
store does 61,000–75,000/s on a disk at rest, 7.7 to 9.4 times SQLite, and 52,000–56,000/s, 6.6 times, in a whole run of this benchmark (see below). The best tenths of a second, in which no flush runs and
no space is written out, do 90,000–95,000/s. So ten times today's SQLite is within reach of two cores only if nothing ever waits; with more cores the first four rows
are spread, and the disk (one sync for 20 puts, 3,000–4,000/s of the 9,000 it can) is not the limit.

Two things make such a burst seem slower than it is. Memory that the host of a virtual machine has not backed yet is written at 0.3 GB/s instead of 6, so that
writing out space costs 5 µs a put and not 1. And on ext4 without a journal, files that were deleted in the last minutes (by an earlier run, or by tests beside) make
each new file dearer, because their inodes are passed over one by one: a fifth of the machine in one run, of which the flush at the end is a part.
`
