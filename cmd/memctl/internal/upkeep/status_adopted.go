package upkeep

import (
	"github.com/varve-db/varve/cmd/memctl/internal/adopted"
)

// adoptedFolder is a folder outside the store that is a link to a folder of notes in the store.
type adoptedFolder struct {
	Link   string `json:"link"`
	Folder string `json:"folder"`
	State  string `json:"state"` // adopting, adopted or releasing
}

// adoptedIn returns the adopted folders of the store in dir. It adds faults of them to the problems.
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
