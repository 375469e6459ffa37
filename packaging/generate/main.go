package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

func main() {
	var o options
	flag.StringVar(&o.release, "release", "", "`version` that the pages name")
	flag.Int64Var(&o.time, "time", 0, "time of the commit, in Unix `seconds`")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: generate [-release VERSION] [-time SECONDS] FOLDER")
		os.Exit(2)
	}
	if err := o.generate(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

type options struct {
	release string
	time    int64
}

const (
	manFolder        = "man"
	completionFolder = "completions"
)

// completions lists the shells, each with the name of the file in which it looks for a command's completion script.
var completions = [][2]string{{"bash", "memctl.bash"}, {"fish", "memctl.fish"}, {"powershell", "memctl.ps1"},
	{"zsh", "_memctl"}}

func (o *options) generate(dir string) error {
	if err := clear(dir); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "generate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	memctl := filepath.Join(work, "memctl.exe")
	build := []string{"build", "-o", memctl}
	if o.release != "" {
		build = append(build, "-ldflags", "-X github.com/varve-db/varve/cmd/memctl/internal/cli.release="+o.release)
	}
	if _, err := o.output("go", append(build, "github.com/varve-db/varve/cmd/memctl")...); err != nil {
		return err
	}
	if err := o.pages(memctl, filepath.Join(work, manFolder), filepath.Join(dir, manFolder)); err != nil {
		return err
	}
	to := filepath.Join(dir, completionFolder)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, c := range completions {
		script, err := o.output(memctl, "completion", c[0])
		if err != nil {
			return err
		}
		if err := o.write(filepath.Join(to, c[1]), script); err != nil {
			return err
		}
	}
	if err := o.licenses(dir); err != nil {
		return err
	}
	return o.image(dir)
}

// clear removes the files that an earlier run has written. It returns an error if the folder contains other
// files.
func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{manFolder, completionFolder, storeArchive, licensesFile}, e.Name()) {
			return fmt.Errorf("%s has %s, which this command has not written: name another folder", dir, e.Name())
		}
	}
	return os.RemoveAll(dir)
}

// pages runs memctl to write its manual pages to the folder that is named by the argument from. It compresses the
// pages and writes them to the folder that is named by the argument to.
func (o *options) pages(memctl, from, to string) error {
	if _, err := o.output(memctl, "manual", from); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(from, "*.1"))
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		if err := o.write(filepath.Join(to, filepath.Base(name)+".gz"), packed.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) write(path string, text []byte) error {
	err := vfs.ReplaceGiven(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	if o.time == 0 {
		return nil
	}
	at := time.Unix(o.time, 0)
	return os.Chtimes(path, at, at)
}

// output runs a program that is built for this machine, even while the release is built for another one, and
// returns its output.
func (o *options) output(name string, args ...string) ([]byte, error) {
	return o.outputOn("", name, args...)
}

// outputOn runs a program with GOOS set to another system, and returns its output.
func (o *options) outputOn(goos, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=", "CGO_ENABLED=0")
	if o.time != 0 {
		cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH="+strconv.FormatInt(o.time, 10))
	}
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w: %s", filepath.Base(name), args, err, bytes.TrimSpace(errOut.Bytes()))
	}
	return out, nil
}
