# A boot sector that says on the first serial line what block 100 of its disk holds (text that ends in a zero), copies
# that block to block 200, says so, and leaves QEMU through isa-debug-exit. 512-byte blocks, BIOS disk services.
    .code16
    .globl _start
_start:
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw $0x7c00, %sp
    movb $0x42, %ah             # extended read
    movw $packet, %si
    int $0x13
    jc failed
    movw $0x8000, %si
    call print
    movl $200, block
    movw $0x4300, %ax           # extended write, without verification
    movw $packet, %si
    int $0x13
    jc failed
    movw $wrote, %si
    jmp say_and_leave
failed:
    movw $no, %si
say_and_leave:
    call print
    movw $0xf4, %dx
    outb %al, %dx
stop:
    hlt
    jmp stop

print:                          # %si: text
    pushw %dx                   # the drive's number
next:
    lodsb
    testb %al, %al
    jz printed
    movb %al, %bl
    movw $0x3fd, %dx
busy:
    inb %dx, %al
    testb $0x20, %al            # transmitter empty
    jz busy
    movb %bl, %al
    movw $0x3f8, %dx
    outb %al, %dx
    jmp next
printed:
    popw %dx
    ret

wrote: .asciz "BOOT SECTOR WROTE\r\n"
no:    .asciz "BOOT SECTOR FAILED\r\n"

    .balign 4
packet:                         # disk address packet: one block at 0:8000
    .byte 16, 0
    .word 1, 0x8000, 0
block:
    .long 100, 0
    .org 510
    .word 0xaa55
