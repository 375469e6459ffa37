package repair

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

func hashOf(b []byte) [32]byte { return sha256.Sum256(b) }

// healer works on an open store, beside others that have it open. Each action
// looks again under flush.lock at what it is about: only then nobody of ours
// changes files.
type healer struct {
	r *repairer
	s Store
	v *verify
	// archive and log were read for these names; see recall.
	names map[string]bool
	known map[string][]past // by file name
}

// heal does one action.
func (h *healer) heal(d *Done) error {
	log := h.v.s.Log
	switch d.Do {
	case Tidy:
		d.Result = "looked through"
		return nil // Settle does
	case Rebuild:
		if err := h.r.intendAny(d, index.BaseName); err != nil {
			return err
		}
		if err := h.r.intendAny(d, index.DeltaName); err != nil {
			return err
		}
		d.Result = "made anew"
		return h.s.Reindex(h.r.ctx)
	}
	if d := log.Damage(); d != nil {
		return fmt.Errorf("the log is damaged: %w", d)
	}
	if d.Do == Adopt && d.Findings[0].Kind == MemoryEdited {
		return h.edited(d)
	}
	if strings.HasPrefix(d.Path, "memories/") && (d.Do == SetAside || d.Do == Salvage) && h.names == nil {
		if err := h.recall(); err != nil {
			return err
		}
	}
	if d.Do == Adopt && h.names == nil {
		if err := h.recall(); err != nil {
			return err
		}
	}
	if err := log.LockFlush(h.r.ctx); err != nil {
		return err
	}
	defer log.UnlockFlush()
	if err := h.v.s.Sight(h.r.ctx); err != nil {
		return err
	}
	name, inFolder := strings.CutPrefix(d.Path, "memories/")
	switch {
	case !inFolder:
		return h.r.aside(d, d.Path, why(d.Findings))
	case d.Do == SetAside, d.Do == Adopt, d.Findings[0].Kind == Unparsable:
		return h.stray(d, name)
	}
	return h.memory(d)
}

// recall reads log and archive once for what they know of the files that no
// entry accounts for.
func (h *healer) recall() error {
	h.names, h.known = map[string]bool{}, map[string][]past{}
	names, err := h.v.memories.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		h.names[name] = true
	}
	all, err := h.v.pasts(func(id string) bool { return h.names[docfile.FileName(id)] })
	if err != nil {
		return err
	}
	undone, err := undoneVersions(h.r.o.FS, h.r.dir)
	if err != nil {
		return err
	}
	for id, list := range all {
		h.known[docfile.FileName(id)] = withoutUndone(list, undone[id])
	}
	return nil
}

// withoutUndone leaves out what a repair wrote and an undo deleted: that says
// nothing about the file, which is as it was before both.
func withoutUndone(list []past, undone []uint64) []past {
	var left []past
	for i, p := range list {
		if slices.Contains(undone, p.version) || p.deleted && i > 0 && slices.Contains(undone, list[i-1].version) {
			continue
		}
		left = append(left, p)
	}
	return left
}

// edited lets the store judge an edit as it does when somebody reads it.
func (h *healer) edited(d *Done) error {
	before, err := h.v.s.State.Find(memory, d.ID)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	if errors.Is(err, errs.ErrNotFound) {
		return errNothing
	}
	was, err := standsAt(h.r.o.FS, h.r.path("memories", docfile.FileName(d.ID)))
	if err != nil || was == nil {
		return errors.Join(err, errNothing)
	}
	if err := h.formerly(d, was, before.Version); err != nil {
		return err
	}
	if err := h.s.Judge(h.r.ctx, d.ID); err != nil {
		return err
	}
	after, err := h.v.s.State.Find(memory, d.ID)
	if err != nil {
		return err
	}
	if after.Version == before.Version {
		d.Result = "it was made of an older version than the present one, which stays"
		return nil
	}
	d.Result = fmt.Sprintf("it is version %d now", after.Version)
	return h.r.m.became(after.Version)
}

// formerly writes down that a memory's newest version is going to change, and
// keeps the edit that stands in its file for Undo.
func (h *healer) formerly(d *Done, was *stands, version wal.LSN) error {
	return h.r.m.intend(change{Do: d.Do, Path: filePath(d.ID), Before: was, ID: d.ID, Was: version, Any: true})
}

// memory heals a memory whose file holds none of its versions.
func (h *healer) memory(d *Done) error {
	v, id := h.v, d.ID
	j := v.memory(id, nil, 0)
	if j.err != nil {
		return j.err
	}
	if j.finding == nil || j.finding.Kind == MemoryTime {
		return errNothing
	}
	if j.finding.Kind == MemoryEdited || j.finding.Kind == Stranger {
		return fmt.Errorf("it was saved meanwhile: run memctl repair again")
	}
	list, err := v.may(id, v.s.Log.Flushed())
	if err != nil {
		return err
	}
	newest := list[0]
	if newest.absent {
		return errNothing
	}
	if doc, mtime, from := v.documentOf(id, newest.version, newest.line.ContentHash); doc != nil {
		return h.restore(d, newest.version, mtime.UnixMicro(), doc, from)
	}
	f := v.read(docfile.FileName(id))
	if f.err == nil {
		if m, doc, err := v.salvaged(f.data, id); err == nil {
			return h.salvage(d, m, doc, newest.version)
		}
	}
	return h.lost(d, &newest)
}

// lost sets what is left of a memory aside, with all that is known of it, and
// takes its entry away.
func (h *healer) lost(d *Done, newest *standing) error {
	line, err := h.rawLine(d.ID)
	if err != nil {
		return err
	}
	n := noteOf(d)
	n.Why, n.Version, n.Known, n.From = "no copy of it is left: "+n.Why, newest.version, line, filePath(d.ID)
	switch err := h.r.asideNote(d, filePath(d.ID), n); {
	case errors.Is(err, errNothing):
		if d.Where, err = h.r.q.Bytes(docfile.FileName(d.ID)+".lost", append([]byte(nil), line...), n); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if err := h.r.m.intend(change{Do: d.Do, Path: filePath(d.ID), ID: d.ID, Was: newest.version}); err != nil {
		return err
	}
	d.Result = "recorded in " + d.Where
	return h.s.Delete(h.r.ctx, d.ID, newest.version)
}

// rawLine is the index line of a memory, as it stands in index or log.
func (h *healer) rawLine(id string) ([]byte, error) {
	set := h.v.s.State.Set()
	if set == nil {
		return nil, errs.ErrClosed
	}
	defer func() { _ = set.Release() }()
	b, _, err := set.Get(nil, index.Memories, id)
	if err != nil || b == nil {
		return []byte(`{}`), nil
	}
	return b, nil
}

// salvage takes what could be read of a memory as its newest version.
func (h *healer) salvage(d *Done, m *memstore.Memory, doc []byte, was wal.LSN) error {
	d.ID = m.ID
	kept, err := h.r.keep(d.Path, noteOf(d))
	if err != nil {
		return err
	}
	if kept == nil {
		return errNothing
	}
	d.Where = kept.Kept
	if err := h.formerly(d, kept, was); err != nil {
		return err
	}
	version, err := h.s.Adopt(h.r.ctx, doc, kept.Mtime, was)
	if err != nil {
		return err
	}
	d.Do = Salvage
	d.Result = fmt.Sprintf("%d bytes of content, marked %s; the file lies in %s", len(m.Content), PartialKey, kept.Kept)
	return h.r.m.became(version)
}

// restore puts a document back. What stands in its place is kept.
func (h *healer) restore(d *Done, version wal.LSN, mtime int64, doc []byte, from string) error {
	rel := filePath(d.ID)
	info, err := h.r.o.FS.Stat(h.r.path("memories", docfile.FileName(d.ID)))
	if err == nil && !info.Mode.IsRegular() {
		if err := h.r.asideSpecial(d, rel, why(d.Findings)); err != nil {
			return err
		}
	}
	was, err := h.r.keep(rel, noteOf(d))
	if err != nil {
		return err
	}
	if was != nil {
		d.Where = was.Kept
	}
	if err := h.r.m.intend(change{Do: d.Do, Path: rel, Before: was, Any: true}); err != nil {
		return err
	}
	d.From, d.Result = from, "put back, from the "+from
	return h.s.PutBack(h.r.ctx, d.ID, version, time.UnixMicro(mtime), doc)
}

// stray judges a file in memories/ that no entry accounts for.
func (h *healer) stray(d *Done, name string) error {
	v := h.v
	f := v.read(name)
	if gone(f.err) {
		return errNothing
	}
	if f.err != nil {
		return h.r.aside(d, d.Path, why(d.Findings))
	}
	m, err := v.decode(append([]byte(nil), f.data...))
	if err != nil {
		return h.unparsable(d, name, &f)
	}
	d.ID = m.ID
	_, err = v.s.State.Find(memory, m.ID)
	switch {
	case err == nil && docfile.FileName(m.ID) == name:
		return errNothing // a memory by now
	case err == nil: // the memory is in its place
		return h.r.aside(d, d.Path, why(d.Findings))
	case !errors.Is(err, errs.ErrNotFound):
		return err
	}
	if h.stale(&f, m.ID) {
		d.Do, d.Result = SetAside, "it was deleted"
		return h.r.aside(d, d.Path, "an older version of a memory that was deleted since")
	}
	return h.adopt(d, &f, m)
}

// stale says whether a file is an old version of a memory that was deleted: what
// was deleted must not come back.
func (h *healer) stale(f *file, id string) bool {
	list := h.known[docfile.FileName(id)]
	if len(list) == 0 || !list[len(list)-1].deleted {
		return false
	}
	for _, p := range list {
		if !p.deleted && p.hash == f.hash {
			return true
		}
	}
	return !f.info.Mtime.After(list[len(list)-1].time)
}

// adopt takes a file into the log as a memory; one that lies under another name
// is set aside then.
func (h *healer) adopt(d *Done, f *file, m *memstore.Memory) error {
	name := path.Base(d.Path)
	was := &stands{Size: f.info.Size, Mtime: f.info.Mtime.UTC(), Hash: fmt.Sprintf("sha256:%x", f.hash)}
	if docfile.FileName(m.ID) != name {
		was = nil
	}
	if err := h.formerly(d, was, 0); err != nil {
		return err
	}
	version, err := h.s.Adopt(h.r.ctx, f.data, f.info.Mtime, 0)
	if err != nil {
		return err
	}
	if err := h.r.m.became(version); err != nil {
		return err
	}
	d.Do, d.Result = Adopt, fmt.Sprintf("it is version %d", version)
	if was == nil {
		return h.r.aside(d, d.Path, "it lay under a name that is not its id's; it was adopted under its own")
	}
	return nil
}

// unparsable looks whether log or archive have the memory whose place a file
// takes that is no memory; else what can be read of the file is taken.
func (h *healer) unparsable(d *Done, name string, f *file) error {
	v := h.v
	list := h.known[name]
	if n := len(list); n > 0 {
		last := list[n-1]
		if _, err := v.s.State.Find(memory, last.id); err == nil || last.deleted {
			return h.r.aside(d, d.Path, why(d.Findings))
		}
		if doc, _, from := v.documentOf(last.id, last.version, last.hash); doc != nil {
			m, err := v.decode(append([]byte(nil), doc...))
			if err != nil {
				return err
			}
			if err := h.salvage(d, m, doc, 0); err != nil {
				return err
			}
			d.Do, d.From, d.Result, d.Loses = Restore, from, "from the "+from, ""
			return nil
		}
	}
	m, doc, err := v.salvaged(f.data, "")
	if err != nil || docfile.FileName(m.ID) != name {
		return h.r.aside(d, d.Path, why(d.Findings))
	}
	if _, err := v.s.State.Find(memory, m.ID); !errors.Is(err, errs.ErrNotFound) {
		return h.r.aside(d, d.Path, why(d.Findings))
	}
	return h.salvage(d, m, doc, 0)
}
