// Package adopted tests folders that other programs write with plain file operations while they are folders of notes:
// what of it is in the history, beside processes that adopt it and are killed. It has only tests.
//
//	minute   two programs that save, rename and delete files, an adopter that is killed again and again, and a
//	         record, outside of the store, of what stood how long
//	editors  what editors do when they save, and an agent that writes the same notes
//
// The everyday share takes seconds; with VARVE_LONG=1 it is a minute, and the adopter is memctl watch --adopt.
package adopted
