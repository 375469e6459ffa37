// Package adopted tests folders that other programs write with plain file operations while they are folders of notes,
// beside processes that adopt the edits and are killed. It has only tests.
//
//	minute   two programs that save, rename and delete files, an adopter that is killed again and again, and a
//	         record, outside of the store, of the contents and how long each was there
//	emptied  a file that was emptied a moment ago, beside others
//
// The everyday share takes seconds; with VARVE_LONG=1 it is a minute, and the adopter is memctl watch --adopt.
package adopted
