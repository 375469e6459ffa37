// Package adopted records the folders elsewhere that a store has adopted as notes. memctl note adopt moves such
// a folder into the store, and leaves a link to it in its former place; memctl note release moves it back.
//
// The record of a store is the file wal/adopted, see package note. A line is appended before the first step of
// a command and after the last one, so that the next command completes one that was killed in between.
package adopted
