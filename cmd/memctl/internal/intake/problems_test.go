package intake

import (
	"fmt"
	"testing"

	"github.com/varve-db/varve/importer"
)

// A file that is nothing but problems does not become a report without an end; what was refused is named all the same.
func TestProblemsMost(t *testing.T) {
	in := &Intake{Report: Report{Counts: map[importer.Kind]int{}}}
	const n = 3 * ProblemsMost
	for i := range n {
		in.problem(importer.Problem{Path: fmt.Sprint(i), Kind: importer.KindDuplicate})
	}
	in.problem(importer.Problem{Path: "lost", Kind: importer.KindDuplicate, LeftOut: true})
	last := in.Report.Problems[len(in.Report.Problems)-1]
	if len(in.Report.Problems) != ProblemsMost+1 || last.Path != "lost" || in.Report.Counts[importer.KindDuplicate] != n+1 || in.Failed != 1 {
		t.Errorf("%d problems, the last one %v; %v, %d failed", len(in.Report.Problems), last, in.Report.Counts, in.Failed)
	}
}
