//go:build linux && amd64

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startShifted starts a command for which the machine's clock is ahead by a duration. The program is
// the one that ships, unchanged: its vDSO, the kernel's code that it reads the clock with, is replaced
// before its first instruction runs. Only the time of day moves; uptime and file times do not.
func startShifted(t *testing.T, cmd *exec.Cmd, ahead time.Duration) {
	t.Helper()
	runtime.LockOSThread() // the thread that starts the process is its tracer
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	err := cmd.Start()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this machine does not let a process trace the ones that it starts: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	at, err := clockGettime(pid)
	if err == nil {
		// mov eax, SYS_clock_gettime; syscall; test edi, edi (CLOCK_REALTIME); jne end;
		// mov rcx, seconds; add [rsi], rcx; end: ret
		code := []byte{0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 0x0d, 0x48, 0xb9}
		code = binary.LittleEndian.AppendUint64(code, uint64(ahead/time.Second))
		code = append(code, 0x48, 0x01, 0x0e, 0xc3)
		_, err = syscall.PtracePokeText(pid, at, code)
	}
	if derr := syscall.PtraceDetach(pid); err != nil || derr != nil {
		_ = cmd.Process.Kill()
		t.Fatal(err, derr)
	}
}

// clockGettime returns where a process has the function by which programs read the clock.
func clockGettime(pid int) (uintptr, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x", &from, &to); n != 2 || !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		image := make([]byte, to-from)
		if _, err := syscall.PtracePeekText(pid, uintptr(from), image); err != nil {
			return 0, err
		}
		f, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return 0, err
		}
		symbols, err := f.DynamicSymbols()
		if err != nil {
			return 0, err
		}
		for _, s := range symbols {
			if s.Name == "__vdso_clock_gettime" && s.Size >= 32 {
				return uintptr(from + s.Value), nil
			}
		}
	}
	return 0, errors.New("the process has no vDSO with a clock")
}
