from rbrl.cli import main

main()
