package upkeep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/adopted"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// notesState describes the notes of a store, in the JSON output of status.
type notesState struct {
	Count int64    `json:"count"`
	Bytes int64    `json:"bytes"`
	Left  *leftOut `json:"left_out,omitempty"` // null: there are no such files
}

// leftOut describes the files in the folder notes/ that the store does not treat as notes.
type leftOut struct {
	Complete bool           `json:"complete"` // false: there was not enough time to look at all files
	Counts   map[string]int `json:"counts"`   // number of files, by the reason
	Files    []leftOutFile  `json:"files"`    // the first files with each reason
}

type leftOutFile struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// leftShown is the maximum number of files with the same reason that are listed.
const leftShown = 20

// notesIn describes the notes of a store. It returns nil if the store has no notes and there is no other file
// in its folder notes/.
func notesIn(ctx context.Context, st *varve.Store) (*notesState, error) {
	u, err := st.Notes().Usage(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("counting the notes: %w", err)
	}
	n := &notesState{Count: u.Notes, Bytes: u.Bytes}
	within, cancel := context.WithTimeout(ctx, refusedWait)
	defer cancel()
	l := &leftOut{Complete: true, Counts: map[string]int{}, Files: []leftOutFile{}}
	for f, err := range st.Notes().LeftOut(within) {
		if err != nil {
			if within.Err() == nil {
				return n, err
			}
			l.Complete = false
			break
		}
		if l.Counts[string(f.Why)]++; l.Counts[string(f.Why)] <= leftShown {
			l.Files = append(l.Files, leftOutFile{f.Path, string(f.Why)})
		}
	}
	if len(l.Counts) > 0 || !l.Complete {
		n.Left = l
	}
	if n.Count == 0 && n.Left == nil {
		return nil, nil
	}
	return n, nil
}

// leftNames has, for each reason why a file is not a note, the text that status shows: for one file, and for several.
var leftNames = map[varve.LeftOutReason][2]string{
	varve.LeftOutLink:    {"link", "links"},
	varve.LeftOutSpecial: {"special file", "special files"},
	varve.LeftOutLarge:   {"file over 16 MiB", "files over 16 MiB"},
	varve.LeftOutHidden:  {"hidden file", "hidden files"},
	varve.LeftOutIgnored: {"file that notes_ignore names", "files that notes_ignore names"},
	varve.LeftOutStore:   {"file of another store", "files of another store"},
	varve.LeftOutName:    {"file whose name no note can have", "files whose names no note can have"},
}

// text returns a line about the files that are not notes. It gives only the number of hidden files.
func (l *leftOut) text() string {
	var list []string
	for _, why := range slices.Sorted(maps.Keys(l.Counts)) {
		is := leftNames[varve.LeftOutReason(why)]
		text := cli.Count(l.Counts[why], is[0], is[1])
		i := slices.IndexFunc(l.Files, func(f leftOutFile) bool { return f.Why == why })
		if why != string(varve.LeftOutHidden) && why != string(varve.LeftOutIgnored) {
			text += " (" + cli.Printable(strings.TrimPrefix(l.Files[i].Path, "notes/"))
			if l.Counts[why] > 1 {
				text += ", …"
			}
			text += ")"
		}
		list = append(list, text)
	}
	if !l.Complete {
		list = append(list, "perhaps more")
	}
	return strings.Join(list, ", ")
}

// adoptedFolder is a folder outside the store that the store has adopted: the folder is now a link to a folder of notes
// in the store.
type adoptedFolder struct {
	Link   string `json:"link"`
	Folder string `json:"folder"`
	State  string `json:"state"` // "adopting", "adopted" or "releasing"
}

// adoptedIn returns the adopted folders of the store in dir. If something is wrong with an adopted folder, adoptedIn
// adds this to the problems of the status.
func (s *State) adoptedIn(dir string) (list []adoptedFolder) {
	problem := func(text string) {
		s.Problems = append(s.Problems, text)
		s.unlinked++
	}
	folders, err := adopted.Of(dir)
	if err != nil {
		problem(err.Error())
		return nil
	}
	entries, err := folders.List()
	if err != nil {
		problem(err.Error())
	}
	for i := range entries {
		e := &entries[i]
		list = append(list, adoptedFolder{e.Link, e.Folder, e.State})
		if text := folders.Problem(e); text != "" {
			problem(text)
		}
	}
	return list
}
