package heal

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/writerfile"
	"github.com/varve-db/varve/repair"
)

// writers writes wal/writers again. It omits the lines whose checksum is wrong, and adds the writers that the log and
// the archive describe.
func (h *healer) writers(d *repair.Done) error {
	log := h.v.Source.Log
	f := writerfile.New(h.r.o.FS, h.r.dir, log.UUID())
	damaged, _, err := f.Damaged()
	if err != nil {
		return err
	}
	if damaged == 0 {
		return errNothing
	}
	t, _, _, err := f.Read()
	if err != nil {
		return err
	}
	if err := h.r.keepFor(d, "wal/"+writerfile.Name); err != nil {
		return err
	}
	known := len(t.All())
	if err := state.PastWriters(h.r.ctx, log.Past(), log.Spilled(), t.Add); err != nil {
		return err
	}
	d.Result = fmt.Sprintf("rewritten with %s, %d of them recovered from log and archive",
		human.Count(len(t.All()), "line", "lines"), len(t.All())-known)
	return f.Write(t.All(), h.r.path("tmp", writerfile.Name+".repair"), h.r.o.fileMode())
}
