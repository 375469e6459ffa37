package repair

import (
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/vector"
)

// fileFolders are the folders of a store in which it has files by name, those above others first.
var fileFolders = []string{"wal", "wal/archive", vector.Folder}

// ownFiles are the files of a store by name, but for those that are listed.
func ownFiles() []string {
	files := []string{"config.json", "checkpoint", index.BaseName, index.DeltaName, "wal/shared", "wal/owner", "wal/expiry",
		MovedName, secondNote, MigrationName, backupComputed, backupComputed + ".old", backupComputed + ".lock"}
	for _, role := range []string{"open", "attach", "flush", "append", "sync", "hold", "watch"} {
		files = append(files, "wal/"+role+".lock")
	}
	return append(files, vector.Files()...)
}

// mostOf is how large a file may be of which opening reads all: the notes of a migration,
// which say that the store is elsewhere, or not one yet.
func mostOf(rel string) int64 {
	if rel == MovedName || rel == secondNote || rel == MigrationName {
		return stateLimit
	}
	return math.MaxInt64
}

// misshapen looks whether a file is in the place of each of the store's own files.
// Anything else, a link, a FIFO, a socket, a device, a folder, is never opened, and what
// is behind it cannot be looked at. What is in the place of folders: see notFolders.
func misshapen(fsys vfs.FS, dir string) (list []Finding, err error) {
	look := func(rel string) {
		info, serr := fsys.Stat(filepath.Join(dir, filepath.FromSlash(rel)))
		switch {
		case gone(serr) || errors.Is(serr, vfs.ErrNotFolder):
		case serr != nil:
			err = errors.Join(err, serr)
		case !info.Mode.IsRegular() || info.Size > mostOf(rel):
			list = append(list, wrongKind(rel, info))
		}
	}
	names := func(folder string) []string {
		all, lerr := fsys.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
		if lerr != nil && !gone(lerr) {
			err = errors.Join(err, lerr)
		}
		slices.Sort(all)
		return all
	}
	there := map[string]bool{".": true}
	for _, folder := range fileFolders {
		info, serr := fsys.Stat(filepath.Join(dir, filepath.FromSlash(folder)))
		there[folder] = there[path.Dir(folder)] && serr == nil && info.Mode.IsDir()
	}
	for _, file := range ownFiles() {
		if there[path.Dir(file)] {
			look(file)
		}
	}
	for _, folder := range []string{"wal", "wal/archive"} {
		if !there[folder] {
			continue
		}
		for _, name := range names(folder) {
			if _, ok := segment.ParseName(name); ok || strings.HasSuffix(name, ".zst") {
				look(folder + "/" + name)
			}
		}
	}
	return list, err
}

// wrongKind is the finding of one such place.
func wrongKind(rel string, info vfs.Info) Finding {
	f := Finding{Kind: WrongKind, Severity: Healable, Path: rel, Offset: -1, Heals: ByMoving, Next: nextRepair,
		Err: &vfs.NotRegularError{Path: rel, Mode: info.Mode}, Stake: "what belongs there; nothing behind it was looked at"}
	if info.Mode.IsRegular() {
		f.Err = fmt.Errorf("%w: %d bytes, limit %d", errs.ErrTooLarge, info.Size, mostOf(rel))
	}
	return f
}
