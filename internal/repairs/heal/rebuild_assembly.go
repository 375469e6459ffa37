package heal

import (
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// rebuildAssembly recomputes the composite embedding of an assembly. If the action is TakeOut, it first removes the
// members that do not exist from the assembly. The previous document is kept in quarantine.
func (h *healer) rebuildAssembly(held *wal.Held, k *kind.Kind, d *repair.Done) error {
	v := h.v
	j := v.Document(k, d.ID, nil, 0)
	if j.Err != nil {
		return j.Err
	}
	if j.Finding != nil && j.Finding.Kind.General() != repair.MemoryTime {
		return fmt.Errorf("the file of the assembly has a fault → run memctl repair again")
	}
	p, err := v.Source.State.Find(k.Letter, d.ID)
	if errors.Is(err, errs.ErrNotFound) {
		return errNothing
	}
	if err != nil {
		return err
	}
	f := v.Read(k, k.FileName(d.ID))
	if f.Err != nil {
		return f.Err // not flushed yet: the next repair finds the file
	}
	c, err := v.Decode(k, "", f.Data)
	if err != nil {
		return err
	}
	var out []string
	for _, id := range c.Members {
		if _, err := v.Source.State.Find(kind.Memories.Letter, id); d.Do == repair.TakeOut && errors.Is(err,
			errs.ErrNotFound) {
			out = append(out, id)
		}
	}
	if d.Do == repair.TakeOut && len(out) == 0 {
		return errNothing
	}
	if d.Where, _, err = h.r.keep(d.Path, noteOf(d)); err != nil {
		return err
	}
	version, err := h.s.RebuildAssembly(h.r.ctx, held, d.ID, p.Version, out)
	if err != nil {
		return err
	}
	d.Result = fmt.Sprintf("now version %d", version)
	if len(out) > 0 {
		d.Result = fmt.Sprintf("%d of %d members were removed; %s", len(out), len(c.Members), d.Result)
	}
	return nil
}
