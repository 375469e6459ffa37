package purge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/erase/trace"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// purgeStrangers overwrites and removes the files in the folder of a kind that belong to no document and that a purge
// must remove: files with the name of a purged document, and copies of one that users have made. It adds these files
// to r.Removed. It adds files that only mention a purged document to r.Mentions and leaves them unchanged.
func (p *Purger) purgeStrangers(ctx context.Context, k *engine.Kind, traces *trace.Set, r *Report) error {
	names, err := k.Names()
	if err != nil && !places.Gone(err) { // working/ is created with the first scope
		return err
	}
	slices.Sort(names)
	known := make([]bool, len(names))
	all := p.engine.IDs(ctx, k, engine.Filters{Expired: true})
	if k == p.engine.Kinds().Scopes {
		all = p.scopes.KeysToCopy(ctx)
	}
	for id, err := range all {
		if err != nil {
			return err
		}
		if i, ok := slices.BinarySearch(names, k.FileName(id)); ok {
			known[i] = true
		}
	}
	for i, name := range names {
		path := k.Path(name)
		info, err := p.engine.Env().FS.Stat(path)
		if known[i] || err != nil || !info.Mode.IsRegular() {
			continue
		}
		b, err := vfs.ReadFile(p.engine.Env().FS, path, places.StoredMost)
		if err != nil {
			return p.engine.Env().IOError("reading", path, err)
		}
		if !traces.Stranger(name, b) {
			if how := traces.Mentioned(name, b); how != "" {
				r.Mentions = append(r.Mentions, repair.Mention{Path: k.Name() + "/" + name, How: how})
			}
			continue
		}
		if err := p.wipeStranger(path, i); err == nil || errors.Is(err, vfs.ErrLinked) {
			r.Removed = append(r.Removed, k.Name()+"/"+name)
		}
		if err := vfs.Unwiped(&r.Left, err); err != nil {
			return p.engine.Env().IOError("overwriting", path, err)
		}
	}
	return flush.DropPurgeFolder(p.flusher)
}

// wipeStranger overwrites and removes a file that belongs to no document. It first moves the file out of the folder:
// otherwise, if the purge is killed, a half-overwritten file would remain in the folder and look like a damaged
// document of a user. n is the first number to try as the file's temporary name.
func (p *Purger) wipeStranger(path string, n int) error {
	dir := filepath.Join(p.engine.Env().Dir, filepath.FromSlash(flush.PurgeFolder))
	if err := vfs.MkdirAll(p.engine.Env().FS, dir, p.engine.Env().FolderMode); err != nil {
		return err
	}
	temp, err := "", fs.ErrExist
	for ; errors.Is(err, fs.ErrExist); n++ {
		temp = filepath.Join(dir, fmt.Sprint(n))
		err = p.engine.Env().FS.RenameNew(path, temp)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(p.engine.Env().FS.SyncDir(dir), p.engine.Env().FS.SyncDir(filepath.Dir(path)))
	}
	if err != nil {
		return err
	}
	return vfs.WipeAlone(p.engine.Env().FS, temp)
}
