package repair_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/repair"
)

// Apply treats files that no entry names as its plan says. The returned file of a deleted memory, and a
// new file, are adopted; a file that is not a document is set aside, however much of it can be read:
// half of a conflict is not a memory.
func TestPlanIsDone(t *testing.T) {
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
	write(t, file(dir, "memories/elsewhere.json"), bytes.Replace(b, []byte(id(9)), []byte("own"), 1))
	for name, text := range map[string]string{
		"merge":  "{\"id\":\"merge\",\n<<<<<<< HEAD\n\"content\":\"ours\"\n=======\n\"content\":\"theirs\"\n>>>>>>> b\n}\n",
		"merged": "<<<<<<< HEAD\n{\"id\":\"merged\",\"content\":\"ours\"}\n=======\n{\"id\":\"merged\",\"content\":\"theirs\"}\n>>>>>>> b\n",
		"mark":   "\xef\xbb\xbf{\"id\":\"mark\",\"content\":\"with a byte order mark\"}",
		"latin":  "{\"id\":\"latin\",\"content\":\"caf\xe9\"}",
		"nan":    `{"id":"nan","content":"x","embedding":[NaN,1]}`,
		"comma":  `{"id":"comma","content":"x",}`,
		"half":   `{"id":"half","content":"x`,
		"text":   "plain text",
	} {
		write(t, file(dir, "memories/"+name+".json"), []byte(text))
	}
	adopt, aside := string(repair.Adopt)+" ", string(repair.SetAside)+" "
	want := []string{
		adopt + "memories/elsewhere.json", adopt + memoryPath(0), adopt + memoryPath(1), adopt + "memories/new.json",
		aside + "memories/comma.json", aside + "memories/half.json", aside + "memories/latin.json", aside + "memories/mark.json",
		aside + "memories/merge.json", aside + "memories/merged.json", aside + "memories/nan.json", aside + "memories/text.json",
	}
	slices.Sort(want)
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
	for _, f := range []string{"merge", "merged", "mark", "latin", "nan", "comma", "half"} {
		if _, ok := memories(t, dir)[f]; ok {
			t.Errorf("%s is a memory", f)
		}
	}
	if !slices.Equal(says, want) || !slices.Equal(did, want) {
		t.Errorf("the plan says\n%q\nand was done\n%q\nwant\n%q", says, did, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
