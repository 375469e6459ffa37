package heal

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// archived moves a damaged copy of a segment from the archive to quarantine. If there is no other copy of the segment,
// archived makes a new copy from the undamaged frames, with gaps in the place of the damaged frames.
func (h *healer) archived(held *wal.Held, d *repair.Done) error {
	log, why := h.v.Source.Log, reasonOf(d.Findings)
	var number uint64
	if _, err := fmt.Sscanf(d.Path, "wal/archive/%d.zst", &number); err != nil || d.Findings[0].Severity != repair.Lost {
		return h.r.setAside(d, d.Path, why)
	}
	m, err := log.Archive().Mend(h.r.ctx, number)
	if places.Gone(err) {
		return errNothing
	}
	if err != nil {
		return err
	}
	if m == nil {
		return h.r.setAside(d, d.Path, why)
	}
	if err := h.r.keepFor(d, d.Path); err != nil {
		return err
	}
	d.Result = "the undamaged part was kept"
	if n := len(m.Lost); n > 0 {
		d.Result += fmt.Sprintf(", with %s", human.Count(n, "gap", "gaps"))
	}
	return log.Archive().WriteMended(held, number, m)
}
