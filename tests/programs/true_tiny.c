/* The least that can be started: for the benchmark of starting it. */
int main(void)
{
	return 0;
}
