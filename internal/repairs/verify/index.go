package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
)

func (v *Run) store() string { return uuid.UUID(v.Source.Log.UUID()).String() }

// index loads the base file and the delta file of the index as a reader does, and reads them completely. If a file is
// replaced during the reading, this process still sees the old content. Therefore index reports a fault only if the
// file that is in the folder afterwards has the fault too.
func (v *Run) index() error {
	var faults []error
	for range tries {
		faults = faults[:0]
		set, err := v.load()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		whole := index.Verify(set)
		if v.o.Workers > 1 {
			whole = index.VerifyBeside(set)
		}
		for err := range whole {
			faults = append(faults, err)
			if len(faults) == faultsMost {
				break
			}
		}
		if len(faults) == 0 {
			return errors.Join(v.offsets(set), set.Release())
		}
		if v.sound != nil {
			_ = v.sound.Release()
		}
		v.sound = set
	}
	v.indexBad = true
	for _, err := range distinct(faults) {
		path, offset := view.Place(err, index.BaseName)
		if errors.Is(err, errs.ErrNewerFormat) {
			return err
		}
		if err := v.report(repair.Finding{
			Kind: repair.IndexDamaged, Severity: repair.Healable, Path: path, Offset: offset, Err: err,
			Stake: "finding and listing memories; the memories themselves are in their files", Heals: repair.ByIndex,
			Next: repair.NextRebuild,
		}); err != nil {
			return err
		}
	}
	return nil
}

// offsets verifies the offsets of lines for the index files in set, with which a look-up finds a line without a
// search. The index files themselves were verified before, without a fault.
func (v *Run) offsets(set *index.Set) error {
	for err := range set.CheckOffsets(v.Source.FS, v.Source.Dir) {
		path, offset := view.Place(err, index.OffsetsName)
		if err := v.report(repair.Finding{
			Kind: repair.IndexDamaged, Severity: repair.Healable, Path: path, Offset: offset, Err: err,
			Stake: "fast look-ups; without the offsets the index is searched", Heals: repair.ByIndex,
			Next: repair.NextFlush,
		}); err != nil {
			return err
		}
	}
	return nil
}

// distinct returns faults without repetitions: only the first fault of each file and offset. It keeps all faults
// without an offset.
func distinct(faults []error) (list []error) {
	for _, err := range faults {
		path, offset := view.Place(err, "")
		if offset < 0 || !slices.ContainsFunc(list, func(e error) bool {
			p, o := view.Place(e, "")
			return p == path && o == offset
		}) {
			list = append(list, err)
		}
	}
	return list
}

// faultsMost is the maximum number of faults that are reported for one index file.
const faultsMost = 1000

func (v *Run) load() (*index.Set, error) {
	spilled := v.Source.Log.Spilled()
	want := index.Want{Store: v.store(), Spilled: spilled}
	if held := v.Source.State.Set(); held != nil {
		if held.Base() == nil {
			want.Start = held.LSN() // there was no index when this process started
		}
		if err := held.Release(); err != nil {
			return nil, err
		}
	}
	return index.Load(v.Source.FS, v.Source.Dir, want, nil)
}

// overlay verifies that each position in the overlay is the position of a log entry of the same key.
func (v *Run) overlay() error {
	for _, at := range v.Source.State.Changes(v.Source.State.From(), 1<<62) {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		e, err := v.Source.Log.ReadAt(v.ctx, at.Pos)
		if err != nil {
			continue // spilled meanwhile; or damage, which was reported with the log
		}
		kind, id := e.Key[0], e.Key[1:]
		if kind == record.Working {
			continue // scopes checks these
		}
		p, err := v.Source.State.Find(kind, id)
		for i := 0; i < tries && wrong(err, p.Version, at.Pos, e.Delete); i++ {
			if err := v.Source.CatchUp(v.ctx); err != nil {
				return err
			}
			p, err = v.Source.State.Find(kind, id)
		}
		if !wrong(err, p.Version, at.Pos, e.Delete) {
			continue
		}
		if err := v.report(repair.Finding{
			Kind: repair.OverlayWrong, Severity: repair.Healable, Path: index.BaseName, Offset: -1, ID: id, LSN: at.Pos,
			Stake: "correct answers of this process", Heals: repair.ByLog, Next: repair.NextFlush,
			Err: fmt.Errorf("the log has a change at position %d, but this process's overlay of the index has "+
				"version %d (%v)", at.Pos, p.Version, err),
		}); err != nil {
			return err
		}
	}
	return nil
}

// wrong reports whether the result of looking up a document (err, version, deleted) contradicts the log, which has
// an entry of this document at position pos. The version found must be the one at pos, or a newer one. If the
// document is not found, the result is never wrong, because the document may have been deleted since.
func wrong(err error, version, pos uint64, deleted bool) bool {
	if errors.Is(err, errs.ErrNotFound) {
		return false
	}
	return err == nil && (version < pos || deleted && version == pos)
}

// backups verifies the older base files of the index in backups/.
func (v *Run) backups() error {
	list, err := index.Backups(v.Source.FS, v.Source.Dir)
	if err != nil {
		return err
	}
	v.total += int64(len(list))
	for _, b := range list {
		v.progress(1)
		var faults []error
		set, err := index.OpenBackup(v.Source.FS, v.Source.Dir, b, v.store())
		switch {
		case places.Gone(err):
			continue // removed to make room for a newer one
		case err != nil:
			if gone := v.Source.Log.Past().Gone(b.LSN, v.Source.Log.Durable()); gone != nil {
				err = fmt.Errorf("%s belongs to an earlier log: %w", b.Name, gone)
			}
			faults = append(faults, err)
		default:
			faults = slices.Collect(set.Base().Check())
			if err := set.Release(); err != nil {
				return err
			}
		}
		for _, err := range distinct(faults) {
			path, offset := view.Place(err, b.Name)
			if err := v.report(repair.Finding{Kind: repair.BackupDamaged, Severity: repair.Healable, Path: path, Offset: offset,
				LSN: b.LSN, Err: err,
				Stake: "this older index as a fallback; the present index is used", Heals: repair.ByMoving,
				Next: repair.NextRepair}); err != nil {
				return err
			}
		}
	}
	return nil
}
