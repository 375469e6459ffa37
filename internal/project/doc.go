// Package project confines the reading and writing of memories to one project and the shared part of a store.
//
// # Where a project is kept
//
// A memory belongs to the project whose id its metadata has as varve_project:
//
//	"metadata": {"varve_project": "prj-3f2a…"}     prj- and 32 hexadecimal digits
//
// A memory without this member is in the shared part: what concerns the user, and what was stored before there were
// projects. The member is part of the document, so it survives export, import, backup, migration, and a rebuild of the
// index. An id is random: a name or a path that another user or a repository gives never selects a project.
//
// # View
//
// A View is a store as one project sees it. Everything that answers or serves an agent for a project reads and writes
// by a View, and never by the store: View.sees is the only decision. A memory that a view does not see is reported as
// missing (varve.ErrNotFound): by its id, by an ending of the id, in a listing, a search, a history and an undo.
//
// A memory of the project overrides that of the shared part with the same key and session: listings and searches leave
// the shared one out.
//
// Not confined: the statistics of words, by which a search ranks its hits, and what the neighbours in a session of
// the same name add to a score, are those of the whole store. No text, id or name of another project is in an answer.
//
// # Notes
//
// The notes of a project are those below projects/<id>; all others are in the shared part. View.seesNote is the only
// decision; package memorytool confines by the folder.
//
// # Order of hits
//
// Hits whose scores are equal in three digits are sorted by the time of writing, the newest first. A memory whose
// metadata has superseded_by is sorted after the memory whose id that is. If equal scores
// continue beyond mostTied ranked hits, only the hits that were ranked so far are sorted by time.
//
// # Endings
//
// Resolve finds a memory by its id, or by a unique ending of it: of at least LeastRead characters for reading, of at
// least LeastChange for a change. A change is refused if a deleted memory has the ending too.
package project
