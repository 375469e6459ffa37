package heal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/repairs/past"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

func hashOf(b []byte) [32]byte { return sha256.Sum256(b) }

// healer repairs an open store while other processes may have it open. Each action checks its
// target again under flush.lock: only then no other process changes files.
type healer struct {
	r     *repairer
	s     Store
	v     *verify.Run
	names [kind.Most]map[string]bool           // by kind: names of the files whose versions recall has searched for
	known [kind.Most]map[string][]past.Version // the versions that recall found, by file name
}

// heal carries out one action.
func (h *healer) heal(d *repair.Done) error {
	log := h.v.Source.Log
	switch d.Do {
	case repair.Tidy:
		d.Result = "checked"
		return nil // Settle does it
	case repair.Rebuild:
		if err := h.r.keepFor(d, index.BaseName); err != nil {
			return err
		}
		if err := h.r.keepFor(d, index.DeltaName); err != nil {
			return err
		}
		d.Result = "rebuilt"
		return h.s.Reindex(h.r.ctx, slices.ContainsFunc(d.Findings,
			func(f repair.Finding) bool { return f.Kind != repair.IndexDamaged }))
	case repair.RebuildVectors:
		for _, name := range vector.Files() {
			if err := h.r.keepFor(d, name); err != nil {
				return err
			}
		}
		d.Result = "rebuilt"
		return h.s.RebuildVectors(h.r.ctx)
	}
	if d.Do == repair.RebuildView {
		d.Result = "rebuilt"
		return h.s.RebuildView(h.r.ctx, d.Path)
	}
	if d := log.Damage(); d != nil {
		return fmt.Errorf("the log is damaged: %w", d)
	}
	k := kind.At(d.Path)
	if k != nil && isStray(&d.Findings[0]) {
		if err := h.recall(k); err != nil {
			return err
		}
	}
	held, err := log.LockFlush(h.r.ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := h.v.Source.CatchUp(h.r.ctx); err != nil {
		return err
	}
	switch {
	case d.Do == repair.RebuildScope:
		return h.rebuildScope(held, d)
	case d.Findings[0].Kind == repair.ArchiveDamaged:
		return h.archived(held, d)
	case d.Findings[0].Kind == repair.PurgesDamaged:
		return h.purges(held, d)
	case d.Findings[0].Kind == repair.WritersDamaged:
		return h.writers(d)
	case k == nil:
		return h.r.setAside(d, d.Path, reasonOf(d.Findings))
	case d.Do == repair.TakeOut, d.Do == repair.Recompute:
		return h.rebuildAssembly(held, k, d)
	case isStray(&d.Findings[0]):
		a, err := h.stray(held, k, d)
		if err == nil && a != nil {
			err = h.adoptNew(held, k, []*newcomer{a})[0]
		}
		return err
	case d.Do == repair.SetAside:
		return h.r.setAside(d, d.Path, reasonOf(d.Findings))
	}
	return h.document(held, k, d)
}

// recall lists the files in the document folder of kind k. It then reads the log and the archive once, and keeps all
// versions of the documents to which these file names belong.
func (h *healer) recall(k *kind.Kind) error {
	if h.names[k.At] != nil {
		return nil
	}
	present := map[string]bool{}
	names, err := h.v.Folders[k.At].Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		present[name] = true
	}
	known, err := h.v.Past.Known(k, present)
	if err == nil {
		h.names[k.At], h.known[k.At] = present, known
	}
	return err
}

// document repairs a document whose file matches none of the document's versions.
func (h *healer) document(held *wal.Held, k *kind.Kind, d *repair.Done) error {
	v, id := h.v, d.ID
	j := v.Document(k, id, nil, 0)
	if j.Err != nil {
		return j.Err
	}
	if j.Finding == nil || j.Finding.Kind.General() == repair.MemoryTime {
		return errNothing
	}
	if j.Finding.Kind.General() == repair.MemoryEdited || j.Finding.Kind == repair.Stranger {
		return fmt.Errorf("the file was saved meanwhile → run memctl repair again")
	}
	list, err := v.May(k, id, v.Source.Log.Flushed())
	if err != nil {
		return err
	}
	newest := list[0]
	if newest.Absent {
		return errNothing
	}
	if doc, mtime, from := v.Past.Document(k, id, newest.Version, newest.Line.ContentHash); doc != nil {
		return h.restore(held, k, d, newest.Version, mtime.UnixMicro(), doc, from)
	}
	if f := v.Read(k, k.FileName(id)); f.Err == nil {
		if c, doc, err := salvaged(v, k, f.Data, id); err == nil {
			if d.Do != repair.Salvage {
				return changedError{}
			}
			return h.salvage(held, k, d, c, doc, newest.Version)
		}
	}
	if d.Do != repair.RecordLost {
		return changedError{}
	}
	return h.lost(held, k, d, &newest)
}

// lost moves what is left of a document to quarantine, and commits the deletion of the document. The note in quarantine
// contains the document's line in the index.
func (h *healer) lost(held *wal.Held, k *kind.Kind, d *repair.Done, newest *verify.Standing) error {
	line, err := h.rawLine(k, d.ID)
	if err != nil {
		return err
	}
	n := noteOf(d)
	n.Why, n.Version, n.Known, n.From = "no copy is left: "+n.Why, newest.Version, line, k.File(d.ID)
	switch err := h.r.setAsideWith(d, k.File(d.ID), n); {
	case errors.Is(err, errNothing):
		if d.Where, err = h.r.aside.Bytes(k.FileName(d.ID)+".lost", append([]byte(nil), line...), n); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	d.Result = "recorded in " + d.Where
	return h.s.Delete(h.r.ctx, held, k.Letter, d.ID, newest.Version)
}

// rawLine returns the text of a document's line in the index; "{}" if the index has no such line.
func (h *healer) rawLine(k *kind.Kind, id string) ([]byte, error) {
	set := h.v.Source.State.Set()
	if set == nil {
		return nil, errs.ErrClosed
	}
	defer func() { _ = set.Release() }()
	b, _, err := set.Get(nil, k.Section, id)
	if err != nil || b == nil {
		return []byte(`{}`), nil
	}
	return b, nil
}

// salvage commits the readable part doc of a damaged document as the document's newest version. prev is the
// version that it replaces, or 0 if the document has no version yet.
func (h *healer) salvage(held *wal.Held, k *kind.Kind, d *repair.Done, c kind.Content, doc []byte, prev wal.LSN) error {
	d.ID = c.ID
	where, info, err := h.r.keep(d.Path, noteOf(d))
	if err != nil {
		return err
	}
	if where == "" {
		return errNothing
	}
	d.Where = where
	if _, err := h.s.Adopt(h.r.ctx, held, k.Letter, c.ID, doc, info.Mtime.UTC(), prev); err != nil {
		return err
	}
	d.Do = repair.Salvage
	d.Result = fmt.Sprintf("%s kept, marked %s; the damaged file is in %s", c.Size(), repair.PartialKey, where)
	return nil
}

// restore writes a document to the document's file again, and keeps the previous file in quarantine. doc is the
// content of the version, mtime the file's time in Unix microseconds. from is the source of doc, for the report.
func (h *healer) restore(held *wal.Held, k *kind.Kind, d *repair.Done, version wal.LSN, mtime int64, doc []byte,
	from string) error {
	rel := k.File(d.ID)
	if err := h.r.keepFor(d, rel); err != nil {
		return err
	}
	d.From, d.Result = from, "restored, from the "+from
	return h.s.PutBack(h.r.ctx, held, k.Letter, d.ID, version, time.UnixMicro(mtime), doc)
}
