package repair

import "github.com/varve-db/varve/errs"

// GapIn returns the finding for a gap that an earlier repair left in a copy of a segment. It is not
// damage: nothing is left to be done.
func GapIn(path string, g *errs.GapError) Finding {
	return Finding{Kind: HistoryGap, Severity: Info, Path: path, Offset: -1, LSN: g.From, Err: g,
		Stake: "nothing more: the old versions that were there are lost"}
}
