package main

import (
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// most is the maximum duration of memctl version, in milliseconds.
const most = 30

func main() {
	quick := flag.Bool("quick", false,
		"measure only the program for this machine, with few runs; no file is written without -o")
	runs := flag.Int("runs", 101, "`runs` of each command; the time is their median")
	out := flag.String("o", "", "`file` for the results (default PROGRAM.md, none with -quick)")
	flag.Parse()
	if *quick {
		*runs = min(*runs, 21)
	}
	text, err := measure(*quick, max(*runs, 1))
	if err == nil {
		fmt.Print(text)
		if path := cmp.Or(*out, map[bool]string{false: "PROGRAM.md"}[*quick]); path != "" {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "program:", err)
		os.Exit(1)
	}
}

var targets = [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}}

func measure(quick bool, runs int) (string, error) {
	work, err := os.MkdirTemp("", "program")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	var b strings.Builder
	fmt.Fprintf(&b,
		"# The program\n\nMade by `go run ./program` in `bench/`: %s/%s, %s, %s.\n\n| built for | MiB | packed, MiB "+
			"|\n|---|---:|---:|\n",
		runtime.GOOS, runtime.GOARCH, runtime.Version(), time.Now().UTC().Format(time.DateOnly))
	own := [2]string{runtime.GOOS, runtime.GOARCH}
	list := targets
	if quick || !slices.Contains(list, own) {
		list = [][2]string{own}
	}
	memctl := filepath.Join(work, "memctl.exe")
	for _, target := range list {
		path := filepath.Join(work, "other.exe")
		if target == own {
			path = memctl
		}
		if err := build(target, path); err != nil {
			return "", err
		}
		plain, packed, err := sizes(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %s/%s | %.1f | %.1f |\n", target[0], target[1], float64(plain)/(1<<20), float64(packed)/(1<<20))
	}
	fmt.Fprintf(&b, "\n| command | ms, median of %d (least–greatest) | CPU ms | must be | |\n|---|---:|---:|---|---|\n",
		runs)
	store := filepath.Join(work, "store")
	if err := fill(memctl, store); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"version"}, {"help"}, {"get", "m500"}, {"list"}, {"status"},
		{"__complete", "get", ""}, {"put", "x", "--id", "x"}} {
		times, cpu, err := started(memctl, store, args, runs)
		if err != nil {
			return "", err
		}
		must, met := "", ""
		if median := times[len(times)/2]; args[0] == "version" {
			must = fmt.Sprintf("< %d", most)
			met = map[bool]string{true: "met", false: "missed"}[median < most]
		}
		fmt.Fprintf(&b, "| `memctl %s` | **%.1f** (%.1f–%.1f) | %.1f | %s | %s |\n", strings.Join(args, " "),
			times[len(times)/2], times[0], times[len(times)-1], cpu[len(cpu)/2], must, met)
	}
	return b.String(), nil
}

func build(target [2]string, path string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/memctl")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+target[0], "GOARCH="+target[1])
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building for %s/%s: %w: %s", target[0], target[1], err, out)
	}
	return nil
}

// sizes returns the size of a file, uncompressed and compressed.
func sizes(path string) (plain, packed int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var n counter
	z, err := gzip.NewWriterLevel(&n, gzip.BestCompression)
	if err != nil {
		return 0, 0, err
	}
	if plain, err = io.Copy(z, f); err == nil {
		err = z.Close()
	}
	return plain, int64(n), err
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// fill creates a store of a thousand memories.
func fill(memctl, store string) error {
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, `{"id":"m%d","content":"memory number %[1]d"}`+"\n", i)
	}
	if out, err := exec.Command(memctl, "init", store).CombinedOutput(); err != nil {
		return fmt.Errorf("init: %w: %s", err, out)
	}
	cmd := exec.Command(memctl, "--store", store, "put", "-q", "--json-input", "-")
	cmd.Stdin = strings.NewReader(lines.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("put: %w: %s", err, out)
	}
	return nil
}

// started runs a command several times. It returns how long the runs took, and the processor time that they used, in
// milliseconds, each list sorted.
func started(memctl, store string, args []string, runs int) (times, cpu []float64, _ error) {
	const warm = 3
	for i := range warm + runs {
		cmd := exec.Command(memctl, args...)
		cmd.Env = append(os.Environ(), "VARVE_STORE="+store)
		start := time.Now()
		err := cmd.Run()
		if took := time.Since(start); i >= warm {
			times = append(times, float64(took.Microseconds())/1000)
			cpu = append(cpu, float64((cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Microseconds())/1000)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("memctl %q: %w", args, err)
		}
	}
	slices.Sort(times)
	slices.Sort(cpu)
	return times, cpu, nil
}
