package places

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// Local returns an error if a path does not name something below the store's folder.
func Local(rel string) error {
	switch {
	case rel == "" || rel == "." || !fs.ValidPath(rel) || !filepath.IsLocal(filepath.FromSlash(rel)):
		return errors.New("the path leads out of the store")
	case strings.Contains(rel, "\x00"):
		return errors.New("the path contains a NUL byte")
	case strings.Contains(rel, "\\"):
		return errors.New("the path contains a backslash")
	}
	return nil
}

// Enter returns the path of a file of the store after it has checked the folders that contain the file. It returns an
// error if one of them is a link, which could lead out of the store, and fs.ErrNotExist if one of them is missing.
func Enter(fsys vfs.FS, dir, rel string) (string, error) {
	at, rest := dir, rel
	for {
		name, more, ok := strings.Cut(rest, "/")
		if !ok {
			return filepath.Join(at, name), nil
		}
		at, rest = filepath.Join(at, name), more
		info, err := fsys.Stat(at)
		if err != nil {
			return "", err
		}
		if !info.Mode.IsDir() {
			return "", fmt.Errorf("%s is not a folder (%s), and a store does not follow links: %w: replace it by "+
				"a real folder", Shown(rel[:len(rel)-len(more)-1]), info.Mode, errs.ErrInvalid)
		}
	}
}

// Shown returns a path in the form for messages. It quotes the path if a terminal or a reader could misread it.
func Shown(rel string) string {
	if q := strconv.Quote(rel); len(rel) > 200 || q[1:len(q)-1] != rel {
		return human.Quote(rel)
	}
	return rel
}

// Within reports whether a path is in a folder, directly or in a subfolder, or is the path of the folder itself. It
// compares only the names and follows no links.
func Within(path, folder string) bool {
	a, err1 := filepath.Abs(path)
	b, err2 := filepath.Abs(folder)
	if err1 != nil || err2 != nil {
		return false
	}
	rel, err := filepath.Rel(b, a)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Names returns the names in a folder, sorted. If the folder is a mount point, it omits lost+found.
func Names(fsys vfs.FS, dir string) ([]string, error) {
	names, err := fsys.ReadDir(dir)
	names = vfs.WithoutLost(fsys, dir, names)
	slices.Sort(names)
	return names, err
}

// Gone reports whether err means that the file does not exist.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
