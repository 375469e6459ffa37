//go:build unix

package users

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

var (
	rounds   = flag.Int("rounds", 6, "how often the users of TestGroup are killed")
	seedFlag = flag.Uint64("users.seed", 0, "the seed; 0 makes one up")
)

// The users and their group, which need no names.
const (
	alice, bob, carol = 61001, 61002, 61003
	agents            = 61000
)

var umasks = map[int]string{0: "022", alice: "077", bob: "022", carol: "027"}

// people is a folder of this test that all users may enter, and the program that they start.
type people struct {
	t             *testing.T
	base, program string
}

func gather(t *testing.T) *people {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("VARVE_LONG=1 as root runs it: the processes are those of several users")
	}
	base, err := os.MkdirTemp("", "varve-users-")
	if err == nil {
		err = os.Chmod(base, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	p := &people{t, base, filepath.Join(base, "program")}
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(p.program, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []int{0, alice, bob, carol} {
		p.folder(fmt.Sprint("home-", uid), uid, uid, 0o700)
	}
	return p
}

// folder makes a folder of a user.
func (p *people) folder(name string, uid, gid int, mode uint32) string {
	p.t.Helper()
	dir := filepath.Join(p.base, name)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.Chown(dir, uid, gid)
	}
	if err == nil {
		err = syscall.Chmod(dir, mode)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return dir
}

func (p *people) command(uid int, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	home := filepath.Join(p.base, fmt.Sprint("home-", uid))
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME="+home, "VARVE_UMASK="+umasks[uid])
	cmd.Dir = home
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), Groups: []uint32{agents}}}
	}
	return cmd
}

func (p *people) start(uid int, job, dir string) *exec.Cmd {
	cmd := p.command(uid, p.program, "-test.run=^$")
	cmd.Env = append(cmd.Env, "VARVE_CHILD="+job, "VARVE_DIR="+dir)
	return cmd
}

// try runs a job of a user to its end.
func (p *people) try(uid int, job, dir string) (string, error) {
	out, err := p.start(uid, job, dir).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (p *people) run(uid int, job, dir string) string {
	p.t.Helper()
	out, err := p.try(uid, job, dir)
	if err != nil {
		p.t.Errorf("user %d: %s: %v: %s", uid, job, err, out)
	}
	return out
}

// TestGroup: three users of one group work on one store, each with another umask, and are killed in
// turn. No user is locked out, and nothing that was acknowledged is lost.
//
//	go test ./tests/users -run TestGroup -rounds 300 -timeout 2h -v
//	go test ./tests/users -run TestGroup -users.seed N      the same choices again
func TestGroup(t *testing.T) {
	p := gather(t)
	seed := proofs.Seed(t, *seedFlag)
	r := rand.New(rand.NewPCG(seed, 2))
	dir := p.folder("store", alice, agents, 0o700)
	p.run(alice, "share", dir)
	acked := filepath.Join(p.base, "acked") // outside of the store
	list, err := os.Create(acked)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	everyone := []int{alice, bob, carol}
	count, killed := 0, 0
	for round := range *rounds {
		r.Shuffle(len(everyone), func(i, j int) { everyone[i], everyone[j] = everyone[j], everyone[i] })
		type worker struct {
			cmd    *exec.Cmd
			out    *bufio.Scanner
			stderr *bytes.Buffer
		}
		var workers []*worker
		for _, uid := range everyone {
			w := &worker{cmd: p.start(uid, fmt.Sprintf("work:%d.%d:%d", uid, round, r.Uint64()), dir), stderr: new(bytes.Buffer)}
			w.cmd.Stderr = w.stderr
			out, err := w.cmd.StdoutPipe()
			if err == nil {
				err = w.cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			w.out = bufio.NewScanner(out)
			workers = append(workers, w)
		}
		for i, w := range workers {
			for n := 1 + r.IntN(60); n > 0 && w.out.Scan(); n-- {
				fmt.Fprintln(list, w.out.Text())
				count++
			}
			if err := w.cmd.Process.Kill(); err != nil {
				t.Errorf("user %d ended by itself: %v: %s", everyone[i], err, w.stderr)
			}
			for w.out.Scan() { // what it had said by then
				fmt.Fprintln(list, w.out.Text())
				count++
			}
			_ = w.cmd.Wait()
			killed++
			if w.stderr.Len() > 0 {
				t.Errorf("round %d: user %d: %s", round, everyone[i], w.stderr)
			}
		}
		// A file is edited by hand, by a user whose umask closes it or not, and one of the users
		// maintains the store.
		by, common := everyone[r.IntN(3)], fmt.Sprintf("common-%d", r.IntN(commons))
		p.run(by, "get:"+common, dir) // its end flushes: an edit of an older version would be set aside
		if _, err := os.Stat(filepath.Join(dir, "memories", common+".json")); err == nil {
			p.run(by, "save:"+common+":by hand of "+fmt.Sprint(by), dir)
			if got := p.run(by, "get:"+common, dir); got != "by hand of "+fmt.Sprint(by) {
				t.Errorf("round %d: the edit of user %d reads as %q", round, by, got)
			}
		}
		switch r.IntN(3) {
		case 0:
			p.run(everyone[0], "repair", dir)
		case 1:
			p.run(everyone[0], "rebuild", dir)
		}
		for _, uid := range everyone {
			p.run(uid, "check:"+acked, dir)
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	p.groups(dir, map[string]bool{})
	t.Logf("%d rounds, %d processes killed, %d acknowledged writes, each there for every user", *rounds, killed, count)
}

// groups checks that every file and folder of a store is accessible to its group and to no other user.
func (p *people) groups(dir string, but map[string]bool) {
	p.t.Helper()
	p.each(dir, func(path string, info fs.FileInfo, st *syscall.Stat_t) {
		want := fs.FileMode(0o660)
		if info.IsDir() {
			want = fs.ModeDir | fs.ModeSetgid | 0o770
		}
		if !but[path] && (info.Mode() != want || st.Gid != agents) {
			p.t.Errorf("%s: mode %s, group %d", path, info.Mode(), st.Gid)
		}
	})
}

func (p *people) each(dir string, look func(path string, info fs.FileInfo, st *syscall.Stat_t)) {
	p.t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n++
		look(path, info, info.Sys().(*syscall.Stat_t))
		return nil
	})
	if err != nil || n < 10 {
		p.t.Errorf("%d files, %v", n, err)
	}
}

// A file that a user saved by hand with umask 077 is not readable for the others. It is named, with what
// helps, and everything else works; once a process of that user has examined it, all may read it.
func TestHandSaved(t *testing.T) {
	p := gather(t)
	dir := p.folder("store", alice, agents, 0o700)
	p.run(alice, "share", dir)
	p.run(bob, "put:a:first", dir)
	p.run(bob, "put:b:first", dir)
	p.run(alice, "save:a:by alice", dir)
	file := filepath.Join(dir, "memories", "a.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	if got := p.run(bob, "get:a", dir); got != "first" { // of the log
		t.Errorf("bob reads %q", got)
	}
	if out, err := p.try(bob, "verify", dir); err != nil || !strings.Contains(out, "chmod g+rw "+file) || strings.Contains(out, "chown") {
		t.Errorf("what bob is told: %v: %s", err, out)
	}
	p.run(bob, "put:b:second", dir)
	if got := p.run(bob, "get:b", dir); got != "second" {
		t.Errorf("another memory: %q", got)
	}
	// Her next process adopts the file, and what it writes is the group's.
	if got := p.run(alice, "get:a", dir); got != "by alice" {
		t.Errorf("alice reads %q", got)
	}
	if got := p.run(carol, "get:a", dir); got != "by alice" {
		t.Errorf("carol reads %q", got)
	}
	p.groups(dir, nil)

	// Bob writes over one that is closed to him: what she saved is not lost.
	p.run(alice, "save:b:by alice", dir)
	p.run(bob, "put:b:by bob", dir)
	if got := p.run(carol, "get:b", dir); got != "by bob" {
		t.Errorf("carol reads %q", got)
	}
	kept := 0
	p.each(filepath.Join(dir), func(path string, info fs.FileInfo, _ *syscall.Stat_t) {
		if info.IsDir() {
			return
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), `"content":"by alice"`) && filepath.Base(path) != "a.json" {
			kept++
		}
	})
	if kept == 0 {
		t.Error("what alice saved into b.json is nowhere")
	}
}

// A command run by root in a user's store leaves nothing behind that the user may not open.
func TestRootInAUsersStore(t *testing.T) {
	p := gather(t)
	dir := p.folder("store", alice, alice, 0o700)
	p.run(alice, "put:a:first", dir)
	p.run(0, "put:a:of root", dir)
	p.run(0, "put:b:of root", dir)
	p.run(0, "rebuild", dir)
	p.run(0, "repair", dir)
	p.run(0, "backup:one", dir)
	p.run(0, "save:a:saved by root", dir)
	if err := os.Chmod(filepath.Join(dir, "memories", "a.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(0, "get:a", dir) // adopted
	acked := filepath.Join(p.base, "acked")
	if err := os.WriteFile(acked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.each(dir, func(path string, info fs.FileInfo, st *syscall.Stat_t) {
		if st.Uid != alice || st.Gid != alice || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %s, owner %d, group %d", path, info.Mode(), st.Uid, st.Gid)
		}
	})
	for _, job := range []string{"get:a", "put:a:again", "put:c:new", "rebuild", "repair", "backup:two", "check:" + acked} {
		p.run(alice, job, dir)
	}
	if _, err := p.try(bob, "get:a", dir); err == nil {
		t.Error("bob reads a store of alice's")
	}

	// Root that is killed leaves nothing either.
	for n := range 5 {
		cmd := p.start(0, fmt.Sprintf("work:root.%d:%d", n, n), dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(out)
		for i := 0; i <= 20*n && in.Scan(); i++ {
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		// Killed between making a file and giving it away, which is before it has content; and a
		// copy of root's own.
		left := filepath.Join("store", "tmp", fmt.Sprint("t", n))
		p.folder(left, alice, alice, 0o700)
		p.folder(filepath.Join(left, "1"), alice, alice, 0o700)
		for name, text := range map[string]string{"1": "", "2": "what root had"} {
			if err := os.WriteFile(filepath.Join(p.base, left, "1", name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.run(alice, "check:"+acked, dir)
		if list, err := os.ReadDir(filepath.Join(p.base, left)); err == nil {
			t.Errorf("what root left in tmp/ stays there: %v", list)
		}
	}
}

// A store is accessible only to its user, whatever the umask, and whatever the mode of the folder in
// which it was created.
func TestPrivate(t *testing.T) {
	p := gather(t)
	for name, mode := range map[string]uint32{"plain": 0o755, "group": 0o775, "setgid": 0o2755, "made": 0} {
		dir := filepath.Join(p.folder("in-"+name, bob, agents, 0o2775), "store")
		if mode != 0 {
			dir = p.folder(name, bob, agents, mode)
		}
		p.run(bob, "put:a:first", dir)
		p.run(bob, "rebuild", dir)
		p.each(dir, func(path string, info fs.FileInfo, st *syscall.Stat_t) {
			if (path != dir || mode == 0) && info.Mode().Perm()&0o077 != 0 || st.Uid != bob {
				t.Errorf("%s: %s: mode %s, owner %d", name, path, info.Mode(), st.Uid)
			}
		})
	}
}

// TestMigrateGivesNothingAway: an existing folder keeps its owner and its mode, whether the migration is
// refused, as when it has files, or not; also if a link leads to it.
func TestMigrateGivesNothingAway(t *testing.T) {
	p := gather(t)
	dir := p.folder("store", alice, alice, 0o700)
	p.run(alice, "put:a:first", dir)
	link := filepath.Join(p.base, "link")
	for _, name := range []string{"full", "empty"} {
		to := p.folder(name, 0, 0, 0o755)
		if name == "full" {
			if err := os.WriteFile(filepath.Join(to, "passwd"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{link, to} {
			if _, err := p.try(0, "migrate:"+to, dir); err == nil && name == "full" {
				t.Errorf("a migration to %s", to)
			}
			info, err := os.Stat(to)
			if err != nil {
				t.Fatal(err)
			}
			if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 || info.Mode().Perm() != 0o755 {
				t.Errorf("%s: mode %s, owner %d", to, info.Mode(), st.Uid)
			}
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShareNothingElse: a folder with files of another kind is not opened to a group.
func TestShareNothingElse(t *testing.T) {
	p := gather(t)
	dir := p.folder("home", alice, alice, 0o700)
	if err := os.WriteFile(filepath.Join(dir, "letter"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := p.try(alice, "share", dir); err == nil {
		t.Error(out)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}
