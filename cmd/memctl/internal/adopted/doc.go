// Package adopted records which folders elsewhere are links to folders of notes in a store: memctl note adopt makes
// them, and memctl note release undoes that.
//
// # wal/adopted
//
// The record of a store is the file wal/adopted: lines of JSON, of which the last one for each link is valid.
//
//	{"link":"/home/ada/vault","folder":"vault","state":"adopted","time":"2026-01-02T03:04:05Z"}
//
//	link    the path of the link, whose folder has no link in its path
//	folder  the path of the folder of notes
//	state   adopting, adopted, releasing or released
//
// A line is appended before the first step and after the last one, so that a command that was killed in between is
// completed by the next one. A line that is not complete, or not valid, is ignored. The record is that of a machine:
// it is not in a clone.
package adopted
