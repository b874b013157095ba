"""Learning which edit to make: rollouts, credit, PPO, GRPO, imitation, run folders."""
