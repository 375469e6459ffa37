package varve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
)

// folders are those of a store, besides wal/, which the log makes.
var folders = []string{"memories", "assemblies", "tmp", "backups", "quarantine"}

// enter finds out what the folder is, and makes a store of it where it may.
func (st *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := st.engine.Residence(); errors.Is(err, syscall.ENOTDIR) && vfs.EnterError(err) == nil {
		wal := filepath.Join(st.engine.Env.Dir, "wal")
		if info, serr := st.engine.Env.FS.Stat(wal); serr == nil && !info.Mode.IsDir() {
			return &vfs.NotFolderError{Path: wal, Mode: info.Mode}
		}
		return fmt.Errorf("%w: %s is a file, or lies in one", errs.ErrNoStore, st.engine.Env.Dir)
	} else if err != nil {
		return err
	}
	c, err := st.engine.Settings.Load()
	switch {
	case err == nil:
		if st.engine.Env.ReadOnly {
			return nil
		}
		return st.makeFolders()
	case errors.Is(err, errs.ErrNewerFormat):
		return err
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, settings.ErrForeign) && !st.hasLog():
		return fmt.Errorf("%w: %w: choose another folder", errs.ErrNoStore, err)
	case errors.Is(err, settings.ErrForeign), errors.Is(err, errs.ErrInvalid) && st.looksLikeStore():
		// A slip of the pen in config.json, or a flipped bit, must not keep anybody
		// from his memories.
		if errors.Is(err, settings.ErrForeign) {
			err = fmt.Errorf("%w: %w: the log beside it is a store's, so it was damaged: memctl repair makes it anew", errs.ErrInvalid, err)
		}
		st.engine.Env.Logger.Warn("config.json is not valid; what is wrong has its default", "err", err)
		st.engine.Env.Event(env.Event{Kind: env.EventConfig, Path: settings.Name, Note: "what is wrong has its default", Err: err})
		st.engine.Settings.Use(c, err)
		st.engine.Problem(err)
		return nil
	default:
		return st.engine.Env.IOError("reading", filepath.Join(st.engine.Env.Dir, settings.Name), err)
	}
	if err := st.foreign(); err != nil {
		return err
	}
	if st.engine.Env.ReadOnly || st.o.MustExist {
		if !st.looksLikeStore() {
			return errs.ErrNoStore
		}
		if st.engine.Env.ReadOnly {
			return nil
		}
	}
	return st.makeStore()
}

// looksLikeStore says whether a folder without a readable config.json is one of
// ours all the same: a rescued copy.
func (st *Store) looksLikeStore() bool {
	if st.hasLog() {
		return true
	}
	names, err := st.engine.Env.FS.ReadDir(filepath.Join(st.engine.Env.Dir, "memories"))
	return err == nil && engine.HasDocuments(names)
}

// hasLog says whether a store's log lies in the folder.
func (st *Store) hasLog() bool {
	wal := filepath.Join(st.engine.Env.Dir, "wal")
	if _, err := st.engine.Env.FS.Stat(filepath.Join(wal, "open.lock")); err == nil {
		return true
	}
	names, _ := st.engine.Env.FS.ReadDir(wal)
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := segment.ParseName(name)
		return ok
	})
}

// foreign refuses a folder that holds another system's memories.
func (st *Store) foreign() error {
	names, err := vfs.ReadRoot(st.engine.Env.FS, st.engine.Env.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return st.engine.Env.IOError("reading", st.engine.Env.Dir, err)
	}
	hint := func(format string) error {
		return fmt.Errorf("%w: it holds memories of another system; take them over into a folder of their own:\n\tmemctl import --from %s %s --store NEW-FOLDER", errs.ErrNoStore, format, st.engine.Env.Dir)
	}
	for _, name := range names {
		switch {
		case name == repair.BackupName:
			return fmt.Errorf("%w: it is a backup, not a store; make one of it in a new folder:\n\tmemctl restore %s NEW-FOLDER", errs.ErrNoStore, st.engine.Env.Dir)
		case strings.HasPrefix(name, "session_") && strings.HasSuffix(name, ".json"):
			return hint("vizor")
		case strings.HasPrefix(name, "mem_") && strings.HasSuffix(name, ".json"),
			strings.HasPrefix(name, "faiss_index.bin"), name == "id_to_index_mapping.json":
			return hint("synthians")
		case name == index.BaseName:
			if end, err := st.endOf(name); err == nil && !strings.Contains(end, `,"end":"`) {
				return hint("synthians")
			}
		}
	}
	return nil
}

func (st *Store) makeStore() error {
	if err := vfs.MkdirAll(st.engine.Env.FS, st.engine.Env.Dir, st.engine.Env.FolderMode); err != nil {
		return st.engine.Env.IOError("making", st.engine.Env.Dir, err)
	}
	// Whoever made it may have been killed before its name was durable.
	if err := st.engine.Env.FS.SyncDir(filepath.Dir(st.engine.Env.Dir)); err != nil && !vfs.IsPermission(err) {
		return st.engine.Env.IOError("syncing", filepath.Dir(st.engine.Env.Dir), err)
	}
	if err := st.makeFolders(); err != nil {
		return err
	}
	ignore := filepath.Join(st.engine.Env.Dir, ".gitignore")
	if _, err := st.engine.Env.FS.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		temp, err := settings.Scratch(st.engine.Env, ".gitignore")
		if err != nil {
			return err
		}
		if err := vfs.WriteDurable(st.engine.Env.FS, temp, ignore, []byte(gitignore), st.engine.Env.FileMode); err != nil {
			return st.engine.Env.IOError("writing", ignore, err)
		}
	}
	return st.engine.Settings.Make()
}

const gitignore = `wal/
tmp/
backups/
vector_index/
checkpoint
memory_index*.json
` + ignoreMoves

// ignoreMoves is what stores made by older programs lack.
const ignoreMoves = `moved.json*
migrate.json*
migrate.lock
`

// endOf is the last bytes of a file.
func (st *Store) endOf(name string) (string, error) {
	f, err := st.engine.Env.FS.OpenFile(filepath.Join(st.engine.Env.Dir, name), os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	end := make([]byte, min(info.Size, 64))
	n, err := f.ReadAt(end, info.Size-int64(len(end)))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(end[:n]), err
}

// makeFolders makes what is missing, and refuses a link where a folder of the
// store should be: it could lead anywhere.
func (st *Store) makeFolders() error {
	made := false
	for _, name := range folders {
		path := filepath.Join(st.engine.Env.Dir, name)
		info, err := st.engine.Env.FS.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := st.engine.Env.FS.Mkdir(path, st.engine.Env.FolderMode); err != nil && !errors.Is(err, fs.ErrExist) {
				return st.engine.Env.IOError("making", path, err)
			}
			made = true
		case err != nil:
			return st.engine.Env.IOError("looking at", path, err)
		case !info.Mode.IsDir():
			return &vfs.NotFolderError{Path: path, Mode: info.Mode}
		}
	}
	if made {
		if err := st.engine.Env.FS.SyncDir(st.engine.Env.Dir); err != nil {
			return st.engine.Env.IOError("syncing", st.engine.Env.Dir, err)
		}
	}
	return nil
}
