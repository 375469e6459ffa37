package replaced

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
)

// snapshot is everything in a folder that a writer can change: for each name its inode, mode, size,
// modification time and the hash of its bytes. nil: there is no folder.
type snapshot map[string][]string

// snap takes a snapshot of a folder. Files that are removed meanwhile are not in it.
func snap(dir string) (snapshot, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := snapshot{}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = s.take(dir, name, d)
		}
		if errors.Is(err, fs.ErrNotExist) && name != dir {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// take adds one name.
func (s snapshot) take(dir, name string, d fs.DirEntry) error {
	info, err := vfs.OS().Stat(name)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		return err
	}
	what := []string{
		fmt.Sprint("inode ", info.Ino), fmt.Sprint("mode ", info.Mode), info.Mtime.Format("mtime 15:04:05.000000000"),
	}
	if d.Type().IsRegular() {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		what = append(what, fmt.Sprint("size ", len(b)), fmt.Sprintf("sha256 %.8x", sha256.Sum256(b)))
	}
	s[filepath.ToSlash(rel)] = what
	return nil
}

// changes lists the differences between two snapshots of one folder.
func changes(before, after snapshot) (list []string) {
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		list = append(list, "the folder was created")
	case after == nil:
		return []string{"the folder was removed"}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch now, ok := after[name]; {
		case !ok:
			list = append(list, "removed "+name)
		case !slices.Equal(now, before[name]):
			var parts []string
			for i := range min(len(now), len(before[name])) {
				if now[i] != before[name][i] {
					parts = append(parts, before[name][i]+" → "+now[i])
				}
			}
			list = append(list, "changed "+name+": "+strings.Join(parts, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			list = append(list, "created "+name)
		}
	}
	return list
}

// shortly joins the first lines of a list.
func shortly(list []string, n int) string {
	more := ""
	if len(list) > n {
		more = fmt.Sprintf("\n\t\tand %d more", len(list)-n)
		list = list[:n]
	}
	return strings.Join(list, "\n\t\t") + more
}
