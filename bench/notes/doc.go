// Command notes measures notes beside plain files and beside SQLite, all in one run:
//
//	CGO_ENABLED=1 go run -tags sqlite_fts5 ./notes [-n 100000] [-size 2000] [-calls 300] \
//	    [-rounds 3] [-writers 8] [-seed 1] [-dir DIR]
//
// A note is Markdown of about size bytes: words (5,000 of them, the k-th as frequent as 1/k) in lines of ten. There are
// 100 notes in each folder. What is compared:
//
//	Varve    st.Notes(); each version stays in the history, and each note is a file
//	files    os.WriteFile and fsync of the file, in place; os.ReadFile. A crash may leave half a file
//	SQLite   a table of paths and texts by github.com/mattn/go-sqlite3: WAL, synchronous=FULL, no history
//
// The first table has one call after the other, of each engine in turn, in a store of 1,000 notes; the median and the
// 99th percentile of all rounds in milliseconds, and how many times as long as the others Varve takes:
//
//	write    another content for a note, durable when the call returns
//	edit     a text that occurs once replaced by another one: in files and SQLite, read, replaced and written
//	read     a note by its path
//	writers  writes of several goroutines at once, to different notes, as writes a second
//
// The second table has n notes:
//
//	open     opening, with the pages cached, until the first note is read
//	list     the 100 notes of a folder, with sizes and times
//	grep     a regular expression over all notes; in SQLite over the texts that a query yields
//	first    the first search for words after the opening
//	search   the best ten notes for two words, one of them frequent and one rare; in SQLite with an index of FTS5 that
//	         is made beforehand, without the tag sqlite_fts5 and in plain files not at all
//
// Results: NOTES.md in bench.
package main
