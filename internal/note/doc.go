// Package note defines notes: files of text, or of any bytes, at paths.
//
// # Paths
//
// A path has 1 to 20 segments with slashes between them, and at most 1,024 bytes of valid UTF-8 in Unicode's normal
// form C. No segment is empty, . or .., and no character is a control, a format character, or one of Unicode's line and
// paragraph separators. Two paths are equal if their bytes are.
//
// # Documents
//
// The key of a note in the log and in the index is its path, so that two creations of one path conflict. Its document
// is its bytes, at most 16 MiB, and nothing else: the file notes/<path> has them as they are.
//
// The id of a note is the UUID version 5 of the path at which it was created, in the name space
// 5a0ad6a4-2c0e-5d8c-9a3e-6f2b7c1d4e90. A note whose id or properties are not those that follow from its path has a
// sidecar: a document of its own, of the same kind, with the id "./" and the path of the note, in the log. No path of
// a note begins with that. Its file is notes/.varve/<folders>/.<name>.json:
//
//	{
//	  "id": "…",                                 the id, if the path has changed
//	  "moves": [{"path": "…", "version": N}],    earlier paths, the oldest first; N is the last version there
//	  "session_id": "…",
//	  "expires_at": "2026-01-02T03:04:05Z",
//	  "tags": ["…"],                             sorted
//	  "metadata": {…}
//	}
//
// Each member is omitted if it is empty; an unknown member makes the file invalid. A sidecar without a note is ignored.
// A note that appears at its path later takes the sidecar over, because git may create the two files in either order.
//
// # Adopted folders
//
// The file wal/adopted of a store has a line of JSON for each step of memctl note adopt and memctl note release. The
// last line for a link is the valid one:
//
//	{"link":"/home/ada/vault","folder":"vault","state":"adopted","time":"2026-01-02T03:04:05Z"}
//
//	link    the path of the link; the path of the folder that contains it has no links
//	folder  the path of the folder of notes
//	state   adopting, adopted, releasing or released
//
// The folder of notes to which a link leads exists until it is released: it is not removed when it becomes empty, and
// if it vanishes, that is treated as an accident and not as the deletion of its notes. The file belongs to one machine:
// a clone does not have it.
//
// # Names of files
//
// notes/ has the folders and the extensions of the paths. What a name cannot hold is escaped, so that each path has one
// file, and each such file one path. The rules depend on the operating system: on Linux and macOS a question mark
// stays.
// A segment becomes a name in these steps:
//
//  1. A byte is written as % and two upper-case hexadecimal digits if it is
//     - a dot that begins the segment (2E): files that begin with a dot are no notes
//     - a backslash (5C)
//     - on Windows one of < > : " | ? * (3C 3E 3A 22 7C 3F 2A), and a dot or a space that ends the segment (2E 20)
//  2. A % of the segment stays, except where step 1, 3 or 4 could have written what begins with it: %, any number of
//     25, and the digits of a byte that step 1 escapes at this place; or + at the beginning or the end of the segment;
//     or, on Windows, = at the beginning. There the % becomes %25.
//  3. On Windows a name of a device (CON, PRN, AUX, NUL, CONIN$, CONOUT$, CLOCK$, COM and LPT with a digit or ¹ ² ³, in
//     any case, with any extension) gets %= before it.
//  4. The name of a sidecar gets a dot before it and .json behind it.
//  5. A name of more than 255 bytes is cut into parts of at most 255, not within a character. Each part but the last
//     is a folder, and ends with %+; each part but the first begins with %+.
//
// Examples, on all systems: .env is %2Eenv, a\b is a%5Cb, %2Eenv is %252Eenv, 100%25 and a%20b are themselves. On
// Windows: what? is what%3F, aux.md is %=aux.md.
//
// A name that is the result of no path is no note. Neither is one with an element that begins with a dot, except for
// sidecars.
//
// A store keeps the names of the system that wrote them: a backup that is restored, or a migration, writes the names of
// the system on which it runs.
package note
