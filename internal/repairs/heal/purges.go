package heal

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// purges writes wal/purges again. It omits the lines whose checksum is wrong, and adds the purges that the log and the
// archive record.
func (h *healer) purges(_ *wal.Held, d *repair.Done) error {
	if d.Path == "wal/"+purgefile.TextsName {
		return h.purgedTexts(d)
	}
	f := purgefile.New(h.r.o.FS, h.r.dir)
	c, err := f.Read()
	if err != nil {
		return err
	}
	if len(c.Damaged) == 0 {
		return errNothing
	}
	if err := h.r.keepFor(d, "wal/"+purgefile.Name); err != nil {
		return err
	}
	// What is damaged there as well is lost.
	log := h.v.Source.Log
	before := len(c.Rows.All())
	_ = state.PastPurges(h.r.ctx, log.Past(), 0, log.Spilled(), c.Rows.Add)
	if err := h.r.ctx.Err(); err != nil {
		return err
	}
	d.Result = fmt.Sprintf("rewritten with %s, %d of them recovered from log and archive",
		human.Count(len(c.Rows.All()), "line", "lines"), len(c.Rows.All())-before)
	return f.Write(c.Rows.Sorted(), nil, h.r.path("tmp", purgefile.Name+".repair"), h.r.o.fileMode())
}

// purgedTexts writes wal/purged-texts again, without the lines whose checksum is wrong. If the file has lost its key,
// the file is useless, and purgedTexts removes it. No copy is kept in quarantine/, because the key must not be there.
func (h *healer) purgedTexts(d *repair.Done) error {
	f := purgefile.NewTextsFile(h.r.o.FS, h.r.dir)
	t, damaged, _, err := f.Read()
	switch {
	case err != nil:
		return err
	case damaged == 0:
		return errNothing
	case t == nil:
		d.Result = "the list of purged texts was removed, because its key is damaged"
		return h.r.o.FS.Remove(f.Path())
	}
	d.Result = fmt.Sprintf("rewritten with %s", human.Count(t.Len(), "text", "texts"))
	return f.Write(t, h.r.path("tmp", purgefile.TextsName+".repair"), h.r.o.fileMode()&^0o007)
}
