package verify

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
)

// Misshapen reports each path of the store's own files at which there is another object: a link, a FIFO, a socket, a
// device, a folder, or a file that is too large. It never opens such an object. NotFolders does the same for the paths
// of folders.
func Misshapen(fsys vfs.FS, dir string) (list []repair.Finding, err error) {
	failed := func(ferr error) {
		if err == nil || !vfs.IsPermission(ferr) { // a folder without permission is reported once
			err = errors.Join(err, ferr)
		}
	}
	look := func(rel string) {
		info, serr := fsys.Stat(filepath.Join(dir, filepath.FromSlash(rel)))
		switch {
		case places.Gone(serr) || errors.Is(serr, vfs.ErrNotFolder):
		case serr != nil:
			failed(serr)
		case !info.Mode.IsRegular() || info.Size > places.Limit(rel):
			list = append(list, wrongKind(rel, info))
		}
	}
	names := func(folder string) []string {
		all, lerr := fsys.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
		if lerr != nil && !places.Gone(lerr) {
			failed(lerr)
		}
		slices.Sort(all)
		return all
	}
	known := map[string]bool{".": true}
	var there func(folder string) bool
	there = func(folder string) bool {
		is, ok := known[folder]
		if !ok {
			info, serr := fsys.Stat(filepath.Join(dir, filepath.FromSlash(folder)))
			is = there(path.Dir(folder)) && serr == nil && info.Mode.IsDir()
			known[folder] = is
		}
		return is
	}
	for _, file := range places.Named() {
		if there(path.Dir(file)) {
			look(file)
		}
	}
	for _, folder := range []string{"wal", "wal/archive"} {
		if !there(folder) {
			continue
		}
		for _, name := range names(folder) {
			if _, ok := segment.ParseName(name); ok || strings.HasSuffix(name, ".zst") {
				look(folder + "/" + name)
			}
		}
	}
	for _, folder := range []string{places.Meanings, places.Sections, places.Words} {
		if !there(folder) {
			continue
		}
		for _, name := range names(folder) {
			if ext := path.Ext(name); ext == ".seg" || ext == ".st" || name == "manifest.json" {
				look(folder + "/" + name)
			}
		}
	}
	return list, err
}

// wrongKind returns the finding about an object at the store's path rel that is not the expected kind of file.
func wrongKind(rel string, info vfs.Info) repair.Finding {
	f := repair.Finding{Kind: repair.WrongKind, Severity: repair.Healable, Path: rel, Offset: -1, Heals: repair.ByMoving,
		Next:  repair.NextRepair,
		Err:   &vfs.NotRegularError{Path: rel, Mode: info.Mode},
		Stake: "the file of the store that belongs at this path; the object at the path was not read"}
	if info.Mode.IsRegular() {
		f.Err = fmt.Errorf("%w: the file has %d bytes, the limit is %d", errs.ErrTooLarge, info.Size, places.Limit(rel))
	}
	return f
}
