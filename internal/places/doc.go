// Package places is the one list of what a store has in its folder: which files and folders,
// what has to be in each place, who may change it, how much of it is read, and how a path is
// followed without leaving the folder.
//
// A store's folder:
//
//	.gitignore                  made with the store, edited by its user
//	config.json                 settings
//	checkpoint                  where recovery begins
//	memory_index.json           the index, and memory_index.delta.json
//	migrate.json, moved.json    notes of a migration; the second one also in wal/
//	memories/, assemblies/      a file for each document
//	working/                    a file for each scope of working memory
//	vector_index/               vectors, and what a re-embedding has computed
//	view_index/                 a folder for each view that plugs in
//	wal/                        segments, locks, what processes share; wal/archive/
//	backups/, quarantine/       older indexes and backups; what was set aside
//	tmp/                        a folder for each process; tmp/parked/, tmp/purge/
//
// Any other file in the folder belongs to somebody else. A store follows no links: Enter looks
// at each folder of a path before it enters the next one.
//
// The limits are for reading what is stored. They are wider than those of config.json, which
// are for writing: what was stored under yesterday's limits is read under today's.
package places
