package repair

import "github.com/varve-db/varve/errs"

// GapIn is the finding for a place in the copy of a segment of which an earlier repair has found
// nothing. It is no damage: nothing is left to be done.
func GapIn(path string, g *errs.GapError) Finding {
	return Finding{Kind: HistoryGap, Severity: Info, Path: path, Offset: -1, LSN: g.From, Err: g,
		Stake: "nothing more: the old versions that were there are lost"}
}
