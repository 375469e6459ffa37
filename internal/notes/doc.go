// Package notes reads and writes the notes of a store: files at paths, see package note.
//
// A read examines the file, and adopts an edit that it finds there before it returns the note, by the rules of package
// adopt. A write does the same: the content on the disk becomes a version in the history before the write replaces it,
// and the conditions of the write are evaluated against that version.
//
// A change of a note is one commit, on the condition that the version from which it was made is still the newest; if
// it is not, the change is prepared again from the newer one, and the caller's conditions are evaluated against that.
// Writing the same content as that of the newest version creates no version.
//
// A rename deletes the note at its old path and creates it at the new one, with its id and a link to where it was in
// the sidecar, in one commit; History follows these links. A folder is renamed in one commit too, which has the
// contents of all notes in it; if these have more than half a segment of the log, the rename is refused.
//
// A Log reads the versions of all notes from the log and the archive, once. It follows the sidecars that it meets, so
// a renamed note stays one note, and the rename is one of its versions. Two notes that were at one path, one after the
// other, are two notes, distinguished by id and time of creation.
//
// The package is above package commit, through which it writes everything, and package history.
package notes
