#include "sim/exec/files.h"

const char *const files_choices[] = {"cold", "warm", NULL};

void files_book(struct placement *p, int drive, double bytes, int at_start)
{
	int ram = hw_first_memory(p->machine, HW_MEMORY_RAM);

	p->files = (struct place_files){.drive = (int16_t)drive, .bytes = bytes, .room = ledger_free(&p->ledger, ram)};
	p->files.kept = bytes > 0 && bytes <= (double)p->files.room;
	p->files.warm = p->files.kept && at_start == FILES_WARM;
}

static op_ref read_from(struct exec *x, double rate, bool ram, double bytes, op_ref after, op_ref after2)
{
	return exec_read_file(x, x->placement->files.drive, bytes, rate, ram, after, after2);
}

op_ref files_read(struct exec *x, double rate, uint64_t step, double bytes, op_ref after, op_ref after2)
{
	const struct place_files *f = &x->placement->files;

	return read_from(x, rate, f->kept && (f->warm || step > 0), bytes, after, after2);
}

op_ref files_read_back(struct exec *x, double rate, double bytes, op_ref after, op_ref after2)
{
	return read_from(x, rate, x->placement->files.kept, bytes, after, after2);
}

op_ref files_write(struct exec *x, double rate, double bytes, op_ref after, op_ref after2)
{
	const struct place_files *f = &x->placement->files;
	int ram = hw_first_memory(x->placement->machine, HW_MEMORY_RAM);

	if (!f->kept)
		return exec_copy_aside(x, ram, f->drive, bytes, true, after, after2);
	op_ref copied = read_from(x, rate, true, bytes, after, after2);
	exec_copy_aside(x, ram, f->drive, bytes, true, copied, 0);
	return copied;
}
