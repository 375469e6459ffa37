// Package writerfile reads and writes wal/writers, the file with the explanations of writers which the
// log has released. Package writer defines its lines.
//
// The holder of flush.lock writes the file; readers take no lock. A reader of a file to which lines are
// being appended ignores the last line while it is incomplete.
package writerfile
