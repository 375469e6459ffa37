// Package places is the one list of the contents of a store's folder: its files and folders, the
// type of each, which may be changed by users, how much of each is read, and how a path is followed
// without leaving the folder.
//
// A store's folder:
//
//	.gitignore                  created with the store, edited by its user
//	config.json                 settings
//	checkpoint                  where recovery begins
//	memory_index.json           the index, and memory_index.delta.json
//	migrate.json, moved.json    notes of a migration; the second one also in wal/
//	memories/, assemblies/      a file for each document
//	working/                    a file for each scope of working memory
//	vector_index/               vectors, and the results of a re-embedding
//	view_index/                 a folder for each plugged-in view
//	wal/                        segments, locks, what processes share; wal/archive/
//	backups/, quarantine/       older indexes and backups; files that were set aside
//	tmp/                        a folder for each process; tmp/parked/, tmp/purge/
//
// Any other file in the folder is foreign. A store follows no links: Enter checks each folder of a
// path before it enters the next one.
//
// The limits are for reading stored data. They are wider than those of config.json, which are for
// writing: data that were stored under earlier limits can still be read.
package places
