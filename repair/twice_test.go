package repair_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// If two new files have the same id, Apply adopts the one that the plan says.
func TestTwoNewFilesOfOneID(t *testing.T) {
	t.Parallel()
	dir := closedStore(t)
	b := bytes.Replace(bytesOf(t, file(dir, memoryPath(9))), []byte(id(9)), []byte("own"), 1)
	for _, name := range []string{"first", "second", "third"} {
		write(t, file(dir, "memories/"+name+".json"), b)
	}
	plan := planOf(t, dir)
	var says, did []string
	for _, a := range plan.Actions {
		says = append(says, string(a.Do)+" "+a.Path)
	}
	for _, d := range apply(t, plan).Done {
		must(t, d.Err)
		did = append(did, string(d.Do)+" "+d.Path)
	}
	adopt, aside := string(repair.Adopt), string(repair.SetAside)
	want := []string{aside + " memories/second.json", aside + " memories/third.json", adopt + " memories/first.json"}
	if !slices.Equal(says, want) || !slices.Equal(did, want) {
		t.Errorf("the plan says\n%q\nand was done\n%q\nwant\n%q", says, did, want)
	}
	if _, ok := memories(t, dir)["own"]; !ok {
		t.Error("none of the three is a memory")
	}
}

// An unreadable config.json may have set a higher number of backups of the index than the default: a
// repair keeps the existing ones.
func TestBrokenConfigKeepsBackups(t *testing.T) {
	t.Parallel()
	dir := closedStore(t)
	rewrite(t, file(dir, "config.json"), []byte(`{"varve":1,"index_backup_count":9,"backup_interval":0}`))
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	for i := range 7 {
		_, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("more", i), Content: "c"})
		must(t, err)
		must(t, st.Admin().Compact(t.Context()))
	}
	must(t, st.Close())
	before, err := index.Backups(vfs.OS(), dir)
	must(t, err)
	if len(before) < 5 {
		t.Fatalf("%d backups of the index", len(before))
	}
	rewrite(t, file(dir, "config.json"), []byte(`{"varve":1,"index_backup_count":9,"backup_interval":0,}`))
	if r := apply(t, planOf(t, dir)); len(r.Done) == 0 || r.Done[0].Do != repair.FixConfig || !strings.Contains(r.Done[0].Result, "index_backup_count") {
		t.Errorf("%v", r.Done)
	}
	want := fmt.Sprintf(`"index_backup_count": %d`, len(before))
	if b := bytesOf(t, file(dir, "config.json")); !bytes.Contains(b, []byte(want)) {
		t.Errorf("%d backups, and config.json is now\n%s", len(before), b)
	}
}
