package heal

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/worklog"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// rebuildScope rebuilds a scope of working memory whose file cannot be used, and moves that file to quarantine. The
// caller must hold flush.lock: otherwise rebuildScope might move a file that another process has just written.
func (h *healer) rebuildScope(held *wal.Held, d *repair.Done) error {
	how, err := h.s.RebuildScope(held.In(h.r.ctx), path.Base(d.Path))
	if err != nil {
		return err
	}
	if how == "" {
		return errNothing
	}
	if err := h.r.setAside(d, d.Path, reasonOf(d.Findings)); err != nil && !errors.Is(err, errNothing) {
		return err
	}
	d.Result = strings.TrimPrefix(d.Result+"; "+how, "; ")
	return nil
}

// scopes writes the changes of working memory that are not flushed yet into the files of their scopes.
func (n *renewal) scopes() error {
	if len(n.worked) == 0 {
		return nil
	}
	layout := n.r.o.layout(n.r.dir)
	folder := layout.Folder(places.Working)
	if err := folder.Make(); err != nil {
		return err
	}
	fl, err := docfile.NewFlusher(docfile.Options{Layout: layout, Token: n.r.token() + "-w", Clock: n.r.o.Clock,
		Workers: 1, Limit: places.DocumentMost})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(n.worked)) {
		c, err := n.scope(folder, key, n.worked[key])
		if err != nil {
			return errors.Join(err, fl.Close())
		}
		if c == nil {
			continue
		}
		// A scope's file depends on the file before it: that one stays until this one is durable.
		fl.Repeat()
		res, err := fl.Round(n.r.ctx, []docfile.Change{*c})
		if err == nil && len(res.Blocked) > 0 {
			err = res.Blocked[0].Err
		}
		if err != nil {
			return errors.Join(err, fl.Close())
		}
	}
	return fl.Close()
}

// scope applies the log entries of a scope of working memory to the scope's file, and returns the change of that file.
// It returns nil if the entries add nothing. An entry contains the complete new value and does not depend on earlier
// entries, so scope can skip damaged entries.
func (n *renewal) scope(folder *docfile.Folder, key string, list []wal.LSN) (*docfile.Change, error) {
	of, err := working.ParseScope(key)
	if err != nil {
		return nil, nil // not the key of a scope: reported as EntryInvalid
	}
	name, store := kind.Scopes.FileName(key), uuid.UUID(n.log.UUID()).String()
	r := worklog.Replay{Store: store, Partial: true}
	if doc, _, err := folder.Read(name, places.DocumentMost); err == nil {
		if was, err := working.DecodeFile(doc); err == nil && was.Scope == of {
			r.File = was
		}
	} else if !places.Gone(err) && !errors.Is(err, errs.ErrCorrupt) {
		return nil, err
	}
	for _, at := range list {
		if at <= r.Base() {
			continue
		}
		e, err := n.log.ReadAt(n.r.ctx, at)
		if err != nil {
			return nil, err
		}
		_ = r.Play(n.s.Source().Codec, &e) // an entry that cannot be read is skipped
	}
	if !r.Played {
		return nil, nil
	}
	f := r.File
	if f.State.Empty() && !r.Dropped { // the entry that created the scope is missing
		f.State.Play(working.Moment{Time: f.Time.UnixMicro(), Tick: f.State.Tick()}, f.State.Version()+1,
			&working.Delta{Changes: []working.Change{{Kind: working.ChangeAttach}}})
	}
	f.Scope, f.Store = of, store
	c := &docfile.Change{
		Folder: folder, Name: name, Delete: f.State.Empty(), Mtime: f.Time, ID: key, Version: f.LSN,
		Ours: func(_ vfs.Info, data func() ([]byte, error)) bool {
			doc, err := data()
			if err != nil {
				return false
			}
			was, err := working.DecodeFile(doc)
			return err == nil && was.Intact && was.Scope == of
		},
	}
	if !c.Delete {
		if c.Bytes, err = f.Encode(); err != nil {
			return nil, err
		}
	}
	return c, nil
}
