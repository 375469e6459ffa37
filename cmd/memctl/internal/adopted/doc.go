// Package adopted records which folders elsewhere are links to folders of notes in a store: memctl note adopt makes
// them, and memctl note release undoes that.
//
// The record of a store is the file wal/adopted, see package note. A line is appended before the first step and after
// the last one, so that a command that was killed in between is completed by the next one.
package adopted
