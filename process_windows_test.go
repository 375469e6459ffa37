package varve

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
)

func stopIdle(t testing.TB, _ *os.Process, _ string) { t.Skip("no SIGSTOP") }

func stopProcess(t testing.TB, _ *os.Process) { t.Skip("no SIGSTOP") }

func contProcess(testing.TB, *os.Process) {}

func fewFiles(context.Context, string, string) error { return errors.ErrUnsupported }

func allocated(info fs.FileInfo) int64 { return info.Size() }
