package engine

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

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// folders are those of a store, besides wal/, which the log makes.
var folders = []string{"memories", "assemblies", "tmp", "backups", "quarantine"}

// Enter finds out what the folder is, and makes a store of it where it may.
func (eng *Engine) Enter(ctx context.Context, mustExist bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := eng.Residence(); errors.Is(err, syscall.ENOTDIR) && vfs.EnterError(err) == nil {
		wal := filepath.Join(eng.Env.Dir, "wal")
		if info, serr := eng.Env.FS.Stat(wal); serr == nil && !info.Mode.IsDir() {
			return &vfs.NotFolderError{Path: wal, Mode: info.Mode}
		}
		return fmt.Errorf("%w: %s is a file, or lies in one", errs.ErrNoStore, eng.Env.Dir)
	} else if err != nil {
		return err
	}
	c, err := eng.Settings.Load()
	switch {
	case err == nil:
		if eng.Env.ReadOnly {
			return nil
		}
		return eng.makeFolders()
	case errors.Is(err, errs.ErrNewerFormat):
		return err
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, settings.ErrForeign) && !eng.hasLog():
		return fmt.Errorf("%w: %w: choose another folder", errs.ErrNoStore, err)
	case errors.Is(err, settings.ErrForeign), errors.Is(err, errs.ErrInvalid) && eng.looksLikeStore():
		// A slip of the pen in config.json, or a flipped bit, must not keep anybody
		// from his memories.
		if errors.Is(err, settings.ErrForeign) {
			err = fmt.Errorf("%w: %w: the log beside it belongs to a store, so the file was damaged: memctl repair --apply rebuilds it", errs.ErrInvalid, err)
		}
		eng.unknownSettings(c, err)
		return nil
	default:
		return eng.Env.IOError("reading", filepath.Join(eng.Env.Dir, settings.Name), err)
	}
	if err := eng.foreign(); err != nil {
		return err
	}
	if !eng.Env.ReadOnly && eng.emptied() {
		return &errs.EmptiedError{Path: eng.Env.Dir}
	}
	// An editor may be saving it, or a branch is checked out that has none.
	if last, err := wal.ReadCheckpoint(eng.Env.FS, eng.Env.Dir); err == nil && last.Config && eng.hasLog() {
		eng.unknownSettings(nil, settings.ErrMissing)
		if eng.Env.ReadOnly {
			return nil
		}
		return eng.makeFolders()
	}
	if eng.Env.ReadOnly || mustExist {
		if !eng.looksLikeStore() {
			return errs.ErrNoStore
		}
		if eng.Env.ReadOnly {
			return nil
		}
	}
	return eng.makeStore()
}

// unknownSettings takes what is valid of a config.json that does not hold.
func (eng *Engine) unknownSettings(c *settings.Config, err error) {
	const note = "invalid settings have their defaults, and nothing is removed until the file is valid"
	eng.Env.Logger.Warn("config.json is not valid; "+note, "err", err)
	eng.Env.Event(env.Event{Kind: env.EventConfig, Path: settings.Name, Note: note, Err: err})
	eng.Settings.Use(c, err)
	eng.Problem(err)
}

// looksLikeStore says whether a folder without a readable config.json is one of
// ours all the same: a rescued copy.
func (eng *Engine) looksLikeStore() bool {
	if eng.hasLog() {
		return true
	}
	names, err := eng.Env.FS.ReadDir(filepath.Join(eng.Env.Dir, "memories"))
	return err == nil && HasDocuments(names)
}

// emptied reports whether a folder without a config.json is what is left of a store: what its .gitignore
// names. git has removed the rest, for a branch that does not contain the store; a config.json made again
// would prevent the switch back, and documents put back would be in the wrong branch.
func (eng *Engine) emptied() bool {
	if _, err := eng.Env.FS.Stat(filepath.Join(eng.Env.Dir, "checkpoint")); err != nil || !eng.hasLog() {
		return false
	}
	for _, folder := range document.Folders {
		names, err := eng.Env.FS.ReadDir(filepath.Join(eng.Env.Dir, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || HasDocuments(names) {
			return false
		}
	}
	return true
}

// hasLog says whether a store's log lies in the folder.
func (eng *Engine) hasLog() bool {
	wal := filepath.Join(eng.Env.Dir, "wal")
	if _, err := eng.Env.FS.Stat(filepath.Join(wal, "open.lock")); err == nil {
		return true
	}
	names, _ := eng.Env.FS.ReadDir(wal)
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := segment.ParseName(name)
		return ok
	})
}

// foreign refuses a folder that holds another system's memories.
func (eng *Engine) foreign() error {
	names, err := vfs.ReadRoot(eng.Env.FS, eng.Env.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return eng.Env.IOError("reading", eng.Env.Dir, err)
	}
	hint := func(format string) error {
		return fmt.Errorf("%w: the folder has memories of another system; import them into a new folder:\n\tmemctl import --from %s %s --store NEW-FOLDER", errs.ErrNoStore, format, eng.Env.Dir)
	}
	for _, name := range names {
		switch {
		case name == repair.BackupName:
			return fmt.Errorf("%w: the folder is a backup, not a store; create a store from it in a new folder:\n\tmemctl restore %s NEW-FOLDER", errs.ErrNoStore, eng.Env.Dir)
		case strings.HasPrefix(name, "session_") && strings.HasSuffix(name, ".json"):
			return hint("vizor")
		case strings.HasPrefix(name, "mem_") && strings.HasSuffix(name, ".json"),
			strings.HasPrefix(name, "faiss_index.bin"), name == "id_to_index_mapping.json":
			return hint("synthians")
		case name == index.BaseName:
			if end, err := eng.endOf(name); err == nil && !strings.Contains(end, `,"end":"`) {
				return hint("synthians")
			}
		}
	}
	return nil
}

func (eng *Engine) makeStore() error {
	// A store whose config.json is missing is opened as it is, also that of another user.
	self := eng.Env.Self
	if eng.hasLog() {
		self = nil
	}
	if _, err := vfs.MakeRoot(eng.Env.FS, eng.Env.Dir, eng.Env.FolderMode, self, eng.Env.Shared); err != nil {
		return eng.Env.IOError("making", eng.Env.Dir, err)
	}
	if err := eng.Env.Hold(); err != nil {
		return err
	}
	if eng.Env.Shared {
		// Everything in it would be the group's.
		if names, err := vfs.Contents(eng.Env.FS, eng.Env.Dir); err != nil || len(names) > 0 && !vfs.IsShared(eng.Env.FS, eng.Env.Dir) {
			if err == nil {
				err = fmt.Errorf("%w: the folder is not empty and not shared with its group: name a new folder", errs.ErrInvalid)
			}
			return fmt.Errorf("sharing %s: %w", eng.Env.Dir, err)
		}
		if err := vfs.Share(eng.Env.FS, eng.Env.Dir); err != nil {
			return eng.Env.IOError("sharing", eng.Env.Dir, err)
		}
	}
	// The process that made it may have been killed before its name was durable.
	if err := eng.Env.FS.SyncDir(filepath.Dir(eng.Env.Dir)); err != nil && !vfs.IsPermission(err) {
		return eng.Env.IOError("syncing", filepath.Dir(eng.Env.Dir), err)
	}
	if err := eng.makeFolders(); err != nil {
		return err
	}
	ignore := filepath.Join(eng.Env.Dir, ".gitignore")
	if _, err := eng.Env.FS.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		temp, err := settings.Scratch(eng.Env, ".gitignore")
		if err != nil {
			return err
		}
		if err := vfs.WriteDurable(eng.Env.FS, temp, ignore, []byte(Ignore), eng.Env.FileMode); err != nil {
			return eng.Env.IOError("writing", ignore, err)
		}
	}
	return eng.Settings.Make()
}

// Ignore is what a store tells git to leave out: what is not documents, and can be made again.
const Ignore = `wal/
tmp/
backups/
vector_index/
checkpoint
memory_index*.json
` + IgnoreMoves

// IgnoreMoves is what stores made by older programs lack.
const IgnoreMoves = `moved.json*
migrate.json*
migrate.lock
`

// endOf is the last bytes of a file.
func (eng *Engine) endOf(name string) (string, error) {
	f, err := eng.Env.FS.OpenFile(filepath.Join(eng.Env.Dir, name), os.O_RDONLY, 0)
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
func (eng *Engine) makeFolders() error {
	made := false
	for _, name := range folders {
		path := filepath.Join(eng.Env.Dir, name)
		info, err := eng.Env.FS.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := eng.Env.FS.Mkdir(path, eng.Env.FolderMode); err != nil && !errors.Is(err, fs.ErrExist) {
				return eng.Env.IOError("making", path, err)
			}
			made = true
		case err != nil:
			return eng.Env.IOError("looking at", path, err)
		case !info.Mode.IsDir():
			return &vfs.NotFolderError{Path: path, Mode: info.Mode}
		}
	}
	if made {
		if err := eng.Env.FS.SyncDir(eng.Env.Dir); err != nil {
			return eng.Env.IOError("syncing", eng.Env.Dir, err)
		}
	}
	return nil
}
