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
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// folders returns the names of the folders that every store has, except wal/, which the log creates. It omits folders
// that are created when they are first needed: working/, and the folder of a kind whose documents require a feature.
func folders() (names []string) {
	for _, k := range kind.Kinds {
		if k.Feature == 0 { // else the first document creates it
			names = append(names, k.Folder)
		}
	}
	return append(names, "tmp", "backups", "quarantine")
}

// enter determines what the folder contains. If the folder has no store, enter creates one, unless mustExist is true or
// this handle is read-only.
func (eng *Engine) enter(ctx context.Context, mustExist bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := eng.CheckMoved(); errors.Is(err, syscall.ENOTDIR) && vfs.EnterError(err) == nil {
		wal := filepath.Join(eng.env.Dir, "wal")
		if info, serr := eng.env.FS.Stat(wal); serr == nil && !info.Mode.IsDir() {
			return &vfs.NotFolderError{Path: wal, Mode: info.Mode}
		}
		return fmt.Errorf("%w: %s is a file, or one of its parent folders is a file", errs.ErrNoStore, eng.env.Dir)
	} else if err != nil {
		return err
	}
	c, err := eng.settings.Load()
	switch {
	case err == nil:
		if eng.env.ReadOnly {
			return nil
		}
		return eng.makeFolders()
	case errors.Is(err, errs.ErrNewerFormat):
		return err
	case errors.Is(err, fs.ErrNotExist):
		// The store may have been moved away since the check above. The note of the move is written before config.json
		// is removed, so this check finds it.
		if err := eng.CheckMoved(); err != nil {
			return err
		}
	case errors.Is(err, settings.ErrForeign) && !eng.hasLog():
		return fmt.Errorf("%w: %w: choose another folder", errs.ErrNoStore, err)
	case errors.Is(err, settings.ErrForeign), errors.Is(err, errs.ErrInvalid) && eng.looksLikeStore():
		// A typo or bit flip in config.json must not lock users out.
		if errors.Is(err, settings.ErrForeign) {
			err = fmt.Errorf("%w: %w: the folder has the log of a store, so config.json is damaged: rebuild it with "+
				"memctl repair --apply", errs.ErrInvalid, err)
		}
		eng.unknownSettings(c, err)
		return nil
	default:
		return eng.env.IOError("reading", filepath.Join(eng.env.Dir, settings.Name), err)
	}
	if err := eng.foreign(); err != nil {
		return err
	}
	if !eng.env.ReadOnly && eng.emptied() {
		// Another process may have created the store since config.json was read. It creates config.json before the log.
		if _, err := eng.settings.Load(); !errors.Is(err, fs.ErrNotExist) {
			return eng.enter(ctx, mustExist)
		}
		return &errs.EmptiedError{Path: eng.env.Dir}
	}
	// An editor may be saving config.json, or a branch without it may be checked out.
	if last, err := wal.ReadCheckpoint(eng.env.FS, eng.env.Dir); err == nil && last.Config && eng.hasLog() {
		eng.unknownSettings(nil, settings.ErrMissing)
		if eng.env.ReadOnly {
			return nil
		}
		return eng.makeFolders()
	}
	if eng.env.ReadOnly || mustExist {
		if !eng.looksLikeStore() {
			return errs.ErrNoStore
		}
		if eng.env.ReadOnly {
			return nil
		}
	}
	return eng.makeStore()
}

// unknownSettings handles an invalid config.json: it uses the settings in it that are valid, and defaults for
// the others.
func (eng *Engine) unknownSettings(c *settings.Config, err error) {
	const note = "invalid settings have their default values, and the store removes nothing until the file is valid"
	eng.env.Logger.Warn("config.json is not valid; "+note, "err", err)
	eng.env.Event(env.Event{Kind: env.EventConfig, Path: settings.Name, Note: note, Err: err})
	eng.settings.Use(c, err)
	eng.NoteProblem(err)
}

// looksLikeStore reports whether a folder is a store although it has no readable config.json. This can be so for a
// rescued copy.
func (eng *Engine) looksLikeStore() bool {
	if eng.hasLog() {
		return true
	}
	names, err := eng.env.FS.ReadDir(filepath.Join(eng.env.Dir, kind.Memories.Folder))
	return err == nil && kind.Memories.HasDocuments(names)
}

// emptied reports whether a folder without a config.json contains only files that the .gitignore of a store names. git
// leaves the folder in this state when it checks out a branch that does not contain the store. If this process created
// a config.json, git could not switch back, and the restored documents would be in the wrong branch.
func (eng *Engine) emptied() bool {
	if _, err := eng.env.FS.Stat(filepath.Join(eng.env.Dir, "checkpoint")); err != nil || !eng.hasLog() {
		return false
	}
	for _, k := range kind.Filed() {
		if eng.lacks(k) {
			continue
		}
		names, err := k.In(eng.Layout()).Names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) || k.HasDocuments(names) {
			return false
		}
	}
	return true
}

// hasLog reports whether the store's folder contains a log: the lock file or a segment in wal/.
func (eng *Engine) hasLog() bool {
	wal := filepath.Join(eng.env.Dir, "wal")
	if _, err := eng.env.FS.Stat(filepath.Join(wal, "open.lock")); err == nil {
		return true
	}
	names, _ := eng.env.FS.ReadDir(wal)
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := segment.ParseName(name)
		return ok
	})
}

// foreign returns an error if the folder contains the memories of another system. It also records the kinds of
// documents whose folders are missing: see lacks.
func (eng *Engine) foreign() error {
	names, err := vfs.ReadRoot(eng.env.FS, eng.env.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return eng.env.IOError("reading", eng.env.Dir, err)
	}
	for _, k := range kind.Kinds {
		if k.Feature != 0 && !slices.Contains(names, k.Folder) {
			eng.lacking = append(eng.lacking, k)
		}
	}
	hint := func(format string) error {
		return fmt.Errorf("%w: the folder has memories of another system; import them into a new folder:\n\tmemctl import "+
			"--from %s %s --store NEW-FOLDER", errs.ErrNoStore, format, eng.env.Dir)
	}
	for _, name := range names {
		switch {
		case name == repair.BackupName:
			return fmt.Errorf("%w: the folder is a backup, not a store; create a store from it in a new folder:\n\tmemctl "+
				"restore %s NEW-FOLDER", errs.ErrNoStore, eng.env.Dir)
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
	// A store whose config.json is missing is opened as it is, even if it belongs to another user.
	self := eng.env.Self
	if eng.hasLog() {
		self = nil
	}
	if _, err := vfs.MakeRoot(eng.env.FS, eng.env.Dir, eng.env.FolderMode, self, eng.env.Shared); err != nil {
		return eng.env.IOError("making", eng.env.Dir, err)
	}
	if err := eng.env.Hold(); err != nil {
		return err
	}
	if eng.env.Shared {
		// All files in the folder would belong to the group.
		if names, err := vfs.Contents(eng.env.FS, eng.env.Dir); err != nil || len(names) > 0 && !vfs.IsShared(eng.env.FS,
			eng.env.Dir) {
			if err == nil {
				err = fmt.Errorf("%w: a new store of a group needs an empty folder or a folder shared with the group: "+
					"choose another folder", errs.ErrInvalid)
			}
			return fmt.Errorf("sharing %s: %w", eng.env.Dir, err)
		}
		if err := vfs.Share(eng.env.FS, eng.env.Dir); err != nil {
			return eng.env.IOError("sharing", eng.env.Dir, err)
		}
	}
	// The process that created the folder may have been killed before its name was durable.
	if err := eng.env.FS.SyncDir(filepath.Dir(eng.env.Dir)); err != nil && !vfs.IsPermission(err) {
		return eng.env.IOError("syncing", filepath.Dir(eng.env.Dir), err)
	}
	if err := eng.makeFolders(); err != nil {
		return err
	}
	ignore := filepath.Join(eng.env.Dir, ".gitignore")
	if _, err := eng.env.FS.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		temp, err := settings.Scratch(eng.env, ".gitignore")
		if err != nil {
			return err
		}
		if err := vfs.WriteDurable(eng.env.FS, temp, ignore, []byte(Ignore), eng.env.FileMode); err != nil {
			return eng.env.IOError("writing", ignore, err)
		}
	}
	return eng.settings.Make()
}

// Ignore is the content of a store's .gitignore. It lists everything that can be rebuilt and is not a document.
const Ignore = `wal/
tmp/
backups/
vector_index/
checkpoint
memory_index*.json
` + IgnoreMoves

// IgnoreMoves is the part of Ignore that is missing from the .gitignore of stores that older programs created.
const IgnoreMoves = `moved.json*
migrate.json*
migrate.lock
`

// endOf returns the last 64 bytes of a file in the store's folder, or the whole file if it is shorter.
func (eng *Engine) endOf(name string) (string, error) {
	f, err := eng.env.FS.OpenFile(filepath.Join(eng.env.Dir, name), os.O_RDONLY, 0)
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

// makeFolders creates the missing folders of the store. If the store has a log, it does not create the folders of
// documents: see makeVanished. It returns an error if a link is in place of a folder, because the link could lead
// anywhere.
func (eng *Engine) makeFolders() error {
	made := false
	for _, name := range folders() {
		path := filepath.Join(eng.env.Dir, name)
		info, err := eng.env.FS.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if kind.Filing(name) != nil && eng.hasLog() {
				eng.vanished = append(eng.vanished, name)
				continue
			}
			if err := eng.env.FS.Mkdir(path, eng.env.FolderMode); err != nil && !errors.Is(err, fs.ErrExist) {
				return eng.env.IOError("making", path, err)
			}
			made = true
		case err != nil:
			return eng.env.IOError("checking", path, err)
		case !info.Mode.IsDir():
			return &vfs.NotFolderError{Path: path, Mode: info.Mode}
		}
	}
	if made {
		if err := eng.env.FS.SyncDir(eng.env.Dir); err != nil {
			return eng.env.IOError("syncing", eng.env.Dir, err)
		}
	}
	return nil
}

// makeVanished creates the missing folders of documents, which makeFolders does not create in a store with a log. If
// the store has documents of a folder's kind, the folder was lost by accident, and makeVanished records that before it
// creates the folder. Otherwise the missing files would look like documents that a user has deleted one by one.
func (eng *Engine) makeVanished(ctx context.Context) {
	for _, k := range eng.kinds.All {
		if !slices.Contains(eng.vanished, k.Name()) {
			continue
		}
		if err := eng.makeAgain(ctx, k); err != nil {
			eng.NoteProblem(fmt.Errorf("recreating the missing folder %s: %w", k.Name(), err))
		}
	}
}

func (eng *Engine) makeAgain(ctx context.Context, k *Kind) error {
	if eng.log.Damage() != nil {
		return nil // the repair makes the folder: how many documents there are is not known
	}
	held, err := eng.log.LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	return k.MakeAgain(eng.state.Live(k.Letter) > 0)
}
