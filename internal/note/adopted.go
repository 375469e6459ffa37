package note

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// The states of an adopted folder.
const (
	Adopting  = "adopting"
	Adopted   = "adopted"
	Releasing = "releasing"
	Released  = "released"
)

// AdoptedFile is the path, in a store, of the file that records the adopted folders.
const AdoptedFile = "wal/adopted"

const mostAdopted = 1 << 20 // maximum size in bytes of AdoptedFile

// AdoptedFolder is a line of AdoptedFile. It describes a folder outside the store that the store has adopted: the
// folder was replaced by a link to a folder of notes.
type AdoptedFolder struct {
	Link   string    `json:"link"`   // absolute path of the link
	Folder string    `json:"folder"` // the path of the folder of notes
	State  string    `json:"state"`
	Time   time.Time `json:"time"`
}

// AdoptedFolders returns the folders that the store at the path store has adopted, including those whose adoption or
// release was begun but not completed. If AdoptedFile has several lines for a link, the newest counts. Incomplete and
// invalid lines are ignored.
func AdoptedFolders(fsys vfs.FS, store string) ([]AdoptedFolder, error) {
	data, err := vfs.ReadFile(vfs.Below(fsys, store), filepath.Join(store, filepath.FromSlash(AdoptedFile)), mostAdopted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of adopted folders: %w", err)
	}
	var list []AdoptedFolder
	for line := range bytes.Lines(data) {
		var a AdoptedFolder
		if json.Unmarshal(line, &a) != nil || !filepath.IsAbs(a.Link) || CheckPath(a.Folder) != nil {
			continue
		}
		list = slices.DeleteFunc(list, func(was AdoptedFolder) bool { return was.Link == a.Link })
		if a.State != Released {
			list = append(list, a)
		}
	}
	return list, nil
}

// AdoptedRoots returns the paths of the folders of notes to which links lead. These folders must exist even if they
// contain no notes. A folder whose release was begun is not among them.
func AdoptedRoots(fsys vfs.FS, store string) (folders []string, err error) {
	list, err := AdoptedFolders(fsys, store)
	for _, a := range list {
		if a.State == Adopted || a.State == Adopting {
			folders = append(folders, a.Folder)
		}
	}
	return folders, err
}
