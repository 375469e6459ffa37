package repair

import "github.com/varve-db/varve/errs"

// GapIn returns the finding for a gap that an earlier repair left in an archived copy of a segment. The gap is not
// damage, and needs no repair.
func GapIn(path string, g *errs.GapError) Finding {
	return Finding{Kind: HistoryGap, Severity: Info, Path: path, Offset: -1, LSN: g.From, Err: g,
		Stake: "nothing more is at stake: the old versions in the gap are already lost"}
}
