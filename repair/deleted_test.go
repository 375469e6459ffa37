package repair_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/repair"
)

// The plan says what is done with a file that no entry names: what was deleted is set aside, and what
// is new is adopted, also where its adoption was undone before.
func TestPlanSetsDeletedAside(t *testing.T) {
	t.Parallel()
	dir := closedStore(t)
	kept := map[string][]byte{}
	for i := range 2 {
		kept[memoryPath(i)] = bytesOf(t, file(dir, memoryPath(i)))
	}
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	for i := range 2 {
		must(t, st.Delete(t.Context(), id(i)))
	}
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	for rel, b := range kept {
		write(t, file(dir, rel), b)
	}
	b := bytesOf(t, file(dir, memoryPath(9)))
	write(t, file(dir, "memories/new.json"), bytes.Replace(b, []byte(id(9)), []byte("new"), 1))
	want := []string{
		string(repair.Adopt) + " memories/new.json",
		string(repair.SetAside) + " " + memoryPath(0), string(repair.SetAside) + " " + memoryPath(1),
	}
	for round := range 2 {
		plan, err := varve.PlanRepair(t.Context(), dir, options(), varve.VerifyOptions{})
		must(t, err)
		var says, did []string
		for _, a := range plan.Actions {
			says = append(says, string(a.Do)+" "+a.Path)
		}
		slices.Sort(says)
		report, err := plan.Apply(t.Context())
		must(t, err)
		for _, d := range report.Done {
			must(t, d.Err)
			did = append(did, string(d.Do)+" "+d.Path)
		}
		slices.Sort(did)
		if !slices.Equal(says, want) || !slices.Equal(did, want) {
			t.Errorf("round %d: the plan says\n%q\nand was done\n%q\nwant\n%q", round, says, did, want)
		}
		if round == 0 {
			_, err := varve.UndoRepair(t.Context(), dir, options(), "")
			must(t, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
