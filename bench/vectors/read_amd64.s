#include "textflag.h"

// func readAVX2(p *byte, blocks int) uint64
// It reads blocks of 256 bytes.
TEXT ·readAVX2(SB), NOSPLIT, $0-24
	MOVQ  p+0(FP), DI
	MOVQ  blocks+8(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

next:
	VPOR (DI), Y0, Y0
	VPOR 32(DI), Y1, Y1
	VPOR 64(DI), Y2, Y2
	VPOR 96(DI), Y3, Y3
	VPOR 128(DI), Y0, Y0
	VPOR 160(DI), Y1, Y1
	VPOR 192(DI), Y2, Y2
	VPOR 224(DI), Y3, Y3
	ADDQ $256, DI
	DECQ CX
	JNZ  next
	VPOR Y1, Y0, Y0
	VPOR Y3, Y2, Y2
	VPOR Y2, Y0, Y0
	VMOVQ X0, AX
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET
