package heal

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/repairs/past"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// undo is one Undo.
type undo struct {
	repairer
	id   string
	mark *journal.Mark
	list []journal.Change
	ends map[string]*journal.Stands
	end  *journal.Change
	rep  *repair.UndoReport

	untold []journal.Change // lines that are to go into the manifest: see committed
	read   history          // of the store that is open
}

// Undo puts things back as they were before a repair, id "" being the newest:
// also the damage. It is refused, with all reasons, when something changed since
// in one of the places (*UndoRefused), and when this copy of the store did not make that repair
// (*UndoForeign), which is so in a clone and wherever a store was copied to. No other process may
// have the store open. It may be interrupted, and run again.
//
// Some things do not come back: a log that was lost and created again; an entry that was recorded
// as lost, which had no document; and the index entry of a version that was salvaged over, whose
// document no copy holds. Their files do.
func Undo(ctx context.Context, dir, id string, o Options) (*repair.UndoReport, error) {
	u := &undo{repairer: repairer{ctx: ctx, Changer: o.changer(dir), o: o, report: &repair.RepairReport{}}}
	id, err := u.chosen(id)
	if err != nil {
		return nil, err
	}
	u.rep = &repair.UndoReport{ID: id}
	return u.rep, u.run()
}

// grounded: what only opening, flushing and repairing write.
func grounded(rel string) bool {
	return rel == "checkpoint" || rel == index.BaseName || rel == index.DeltaName || slices.Contains(vector.Files(), rel) ||
		strings.HasPrefix(rel, "wal/") && !strings.HasPrefix(rel, "wal/archive/")
}

func (u *undo) run() error {
	reasons, err := u.changedSince()
	if err != nil {
		return err
	}
	if len(reasons) > 0 {
		return &repair.UndoRefused{ID: u.id, Reasons: reasons}
	}
	if err := u.mark.Append(u.o.FS, u.Dir, u.id, append(u.untold, journal.Change{Undone: true})...); err != nil {
		return err
	}
	if err := u.versions(); err != nil {
		return err
	}
	if err := u.o.layout(u.Dir).Folder("wal").Make(); err != nil {
		return err
	}
	release, ok, err := wal.LockExclusive(u.o.FS, u.Dir, u.o.Known, u.o.fileMode(), func(k vfs.Lock) error {
		ctx, cancel := context.WithTimeout(u.ctx, u.o.LockWait)
		defer cancel()
		return k.Lock(ctx, vfs.ModeExclusive)
	})
	if err != nil {
		return err
	}
	if !ok {
		return &errs.LockError{Path: u.Path("wal", "attach.lock"), Err: fmt.Errorf("stop the processes %v, then undo it again", u.attached())}
	}
	defer release()
	return u.files()
}

// first is the oldest change of each path: what stood there before the repair.
func (u *undo) first() (paths []string, by map[string]*journal.Change) {
	by = map[string]*journal.Change{}
	for i := range u.list {
		c := &u.list[i]
		if c.Path != "" && by[c.Path] == nil && c.Do != repair.RecordLost && c.Unlikely() == nil {
			by[c.Path] = c
			paths = append(paths, c.Path)
		}
	}
	return paths, by
}

// changedSince lists the places that are neither as the repair left them nor as
// they were before it, which is what an undo that was cut has put back.
func (u *undo) changedSince() (reasons []string, err error) {
	bad := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if u.end == nil && slices.ContainsFunc(u.list, func(c journal.Change) bool { return grounded(c.Path) }) {
		bad("the repair was interrupted: run memctl repair --apply again, then undo both")
		return reasons, nil
	}
	paths, by := u.first()
	ground := slices.ContainsFunc(paths, grounded)
	for _, rel := range paths {
		c := by[rel]
		if err := u.ctx.Err(); err != nil {
			return nil, err
		}
		after := u.after(rel)
		now, err := u.now(rel, c.Before, after)
		if err != nil {
			return nil, err
		}
		if same(now, c.Before) || same(now, after) || c.ID != "" {
			continue
		}
		if u.end == nil && c.Any {
			continue // the repair was cut; its versions tell, below
		}
		if grounded(rel) {
			bad("%s was written again", places.Shown(rel))
		} else {
			bad("%s is not as the repair left it", places.Shown(rel))
		}
	}
	if !ground || len(reasons) > 0 {
		more, err := u.versionsSince()
		if reasons = append(reasons, more...); err != nil {
			return reasons, err
		}
	}
	more, err := u.unversioned()
	return append(reasons, more...), err
}

// unversioned judges by their files the documents of which nothing says as which version
// they were written: no version tells whether somebody has written them since.
func (u *undo) unversioned() (reasons []string, err error) {
	paths, by := u.first()
	for _, rel := range paths {
		versioned := func(c journal.Change) bool { return c.Path == rel && c.ID != "" && c.Now != 0 }
		c, after := by[rel], u.after(rel)
		if c.ID == "" || slices.ContainsFunc(u.list, versioned) {
			continue
		}
		now, err := u.now(rel, c.Before, after)
		if err != nil {
			return reasons, err
		}
		if !same(now, c.Before) && !same(now, after) {
			reasons = append(reasons, fmt.Sprintf("%s is not as it was, and nothing says as which version it was written", places.Shown(rel)))
		}
	}
	return reasons, nil
}

// now is what stands at a path. Only what is as large as one of those that it is compared
// with is read.
func (u *undo) now(rel string, with ...*journal.Stands) (*journal.Stands, error) {
	name, err := places.Enter(u.o.FS, u.Dir, rel)
	if places.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := u.o.FS.Stat(name)
	if places.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode.IsRegular() && !slices.ContainsFunc(with, func(s *journal.Stands) bool { return s != nil && s.Size == info.Size }) {
		return &journal.Stands{Size: info.Size, Mtime: info.Mtime.UTC(), Hash: "not read"}, nil
	}
	return journal.StandsAt(u.o.FS, name)
}

// after is what the repair left at a path.
func (u *undo) after(rel string) *journal.Stands {
	if s, ok := u.ends[rel]; ok {
		return s
	}
	var last *journal.Stands
	for _, c := range u.list {
		if c.Path == rel {
			last = c.After
		}
	}
	return last
}

// same compares bytes; a time moves with every copy.
func same(a, b *journal.Stands) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Size == b.Size && a.Hash == b.Hash
}

// adopted are the changes that led to a version in the log.
func (u *undo) adopted() (list []journal.Change) {
	for _, c := range u.list {
		if c.ID != "" && c.Now != 0 && c.Do != repair.RecordLost && kind.At(c.Path) != nil {
			list = append(list, c)
		}
	}
	return list
}

func (u *undo) versionsSince() (reasons []string, err error) {
	if len(u.adopted()) == 0 && !slices.ContainsFunc(u.list, unsaid) {
		return nil, nil
	}
	s, err := u.o.Open(u.ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	if err := u.committed(s); err != nil {
		return nil, err
	}
	for _, c := range u.adopted() {
		p, err := s.Source().State.Find(kind.At(c.Path).Letter, c.ID)
		switch {
		case errors.Is(err, errs.ErrNotFound) && c.Was == 0:
		case err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: %v", human.Quote(c.ID), err))
		case p.Version != c.Now && !(c.Was != 0 && p.Version > c.Now && u.former(s, c, p.Version)):
			reasons = append(reasons, fmt.Sprintf("%s was written again since", human.Quote(c.ID)))
		}
	}
	return reasons, nil
}

// former says whether a version is the one that stood before the repair, put
// back by an undo that was cut.
func (u *undo) former(s Store, c journal.Change, version wal.LSN) bool {
	doc := u.document(s, kind.At(c.Path), c.ID, c.Was)
	now := u.document(s, kind.At(c.Path), c.ID, version)
	return doc != nil && string(doc) == string(now)
}

// document reads a version out of log or archive, whatever its hash.
func (u *undo) document(s Store, k *kind.Kind, id string, version wal.LSN) []byte {
	all, err := u.pasts(s, k)
	if err != nil {
		return nil
	}
	for _, p := range all[id] {
		if p.Version == version && !p.Deleted {
			doc, _, _ := past.New(u.ctx, s.Source()).Document(k, id, version, p.Hash)
			return doc
		}
	}
	return nil
}

// versions takes back what the log was told.
func (u *undo) versions() error {
	list := u.adopted()
	if len(list) == 0 {
		return nil
	}
	s, err := u.o.Open(u.ctx, false)
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(list) {
		if err = u.version(s, c); err != nil {
			break
		}
	}
	if err == nil {
		err = s.Settle(u.ctx)
	}
	return errors.Join(err, s.Close())
}

func (u *undo) version(s Store, c journal.Change) error {
	p, err := s.Source().State.Find(kind.At(c.Path).Letter, c.ID)
	if errors.Is(err, errs.ErrNotFound) || err == nil && p.Version != c.Now {
		return nil // done by an undo that was cut
	}
	if err != nil {
		return err
	}
	// What was adopted is the file's only copy once its place is given back.
	if c.Before != nil && c.Before.Kept == "" {
		if doc := u.document(s, kind.At(c.Path), c.ID, c.Now); doc != nil {
			if _, err := u.Quarantine.Bytes(path.Base(c.Path), doc, docfile.Note{Why: "the repair that adopted it was undone", From: c.Path, ID: c.ID, Version: c.Now}); err != nil {
				return err
			}
		}
	}
	held, err := s.Source().Log.LockFlush(u.ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if c.Was == 0 {
		if err := s.Delete(u.ctx, held, kind.At(c.Path).Letter, c.ID, c.Now); err != nil {
			return err
		}
		u.rep.Undone = append(u.rep.Undone, human.Quote(c.ID)+" is unknown again")
		return nil
	}
	doc := u.document(s, kind.At(c.Path), c.ID, c.Was)
	if doc == nil && (c.Do == repair.TakeOut || c.Do == repair.Recompute) {
		doc = u.kept(c)
	}
	if doc == nil {
		u.rep.Left = append(u.rep.Left, fmt.Sprintf("%s: no copy holds its version %d", human.Quote(c.ID), c.Was))
		return nil
	}
	if _, err := s.Adopt(u.ctx, held, kind.At(c.Path).Letter, doc, u.o.Clock(), c.Now); err != nil {
		return err
	}
	u.rep.Undone = append(u.rep.Undone, human.Quote(c.ID)+" has its former version")
	return nil
}

// kept reads what stood in the place of a sound document out of quarantine.
func (u *undo) kept(c journal.Change) []byte {
	if c.Before == nil || c.Before.Kept == "" {
		return nil
	}
	name, err := places.Enter(u.o.FS, u.Dir, c.Before.Kept)
	if err != nil {
		return nil
	}
	b, err := vfs.ReadText(u.o.FS, name, places.DocumentMost)
	if err != nil || fmt.Sprintf("sha256:%x", hashOf(b)) != c.Before.Hash {
		return nil
	}
	return b
}
