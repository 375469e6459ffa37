// Package notes reads and writes the notes of a store: files at paths, see package note.
//
// A read looks at the file, and an edit that it finds there is adopted first, by the rules of package adopt. So does a
// write: what the disk has is in the history before it is replaced, and a condition is judged against it.
//
// A change of a note is one commit, on the condition that the version from which it was made is still the newest; if
// it is not, the change is prepared from the newer one, and the conditions of the caller are judged against that.
// Contents that are equal to those of the newest version make no version.
//
// A rename deletes the note at its old path and creates it at the new one, with its id and a link to where it was in
// the sidecar, in one commit; History follows these links. A folder is renamed in one commit too, which has the
// contents of all notes in it: of more than half a segment of the log, it is refused.
//
// A Log reads the versions of all notes from the log and the archive, once. It follows the sidecars that it meets, so
// that a rename is one version of the same note, and two notes at one path, one after the other, are two: the id and
// the time of creation tell them apart.
//
// Above package commit, through which everything is written, and package history.
package notes
